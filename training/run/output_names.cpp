#include "training/run/output_names.h"

#include <algorithm>

#include "core/text/json.h"
#include "training/run/data_of_run.h"

namespace miniqat::training {

std::vector<std::string> recorded_output_names(const RunDirectory& run, const Task& task) {
  if (&task == &classification()) return recorded_class_names(run);
  std::vector<std::string> names;
  if (&task == &reconstruction()) return names;
  const nlohmann::ordered_json recorded = recorded_of_data(run, "target_names");
  if (!recorded.is_array()) return names;
  for (const nlohmann::ordered_json& one : recorded) {
    if (!one.is_string()) return {};
    std::string& name = names.emplace_back(one.get<std::string>());
    // A column may be called anything; a model takes no control characters.
    std::ranges::replace_if(
        name, [](unsigned char c) { return c < ' ' || c == 127; }, '_');
  }
  return names;
}

}  // namespace miniqat::training
