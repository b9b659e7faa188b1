#include "training/run/output_names.h"

#include <algorithm>
#include <iterator>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/run/data_of_run.h"

namespace miniqat::training {
namespace {

/// A column may be called anything; a model takes UTF-8 without control characters.
std::string plain(const std::string& name) {
  using Json = nlohmann::json;
  std::string text = Json::parse(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '_');
  return text;
}

}  // namespace

std::vector<std::string> output_names(const datasets::Dataset& data, const Task& task) {
  if (&task == &classification()) return data.class_names;
  std::vector<std::string> names;
  if (&task == &reconstruction()) return names;
  std::ranges::transform(data.target_names, std::back_inserter(names), plain);
  return names;
}

void require_order_of(const std::vector<std::string>& outputs, const Task& task, const datasets::Dataset& data,
                      const std::string& source) {
  const std::vector<std::string> ours = output_names(data, task);
  if (&task != &classification() && ours != outputs && std::ranges::is_permutation(ours, outputs))
    fail(source, ": its outputs are ", printable(joined(outputs)), ", in this order, and the targets of ", data.name,
         " are ", printable(joined(ours)));
}

std::vector<std::string> recorded_output_names(const RunDirectory& run, const Task& task) {
  if (&task == &classification()) return recorded_names(run, "class_names");
  std::vector<std::string> names;
  if (&task == &reconstruction()) return names;
  const nlohmann::ordered_json recorded = recorded_of_data(run, "target_names");
  if (!recorded.is_array()) return names;
  for (const nlohmann::ordered_json& one : recorded) {
    if (!one.is_string()) return {};
    names.push_back(plain(one.get<std::string>()));
  }
  return names;
}

}  // namespace miniqat::training
