#include "exporters/properties.h"

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::exporters {
namespace {

std::string list_of(const std::vector<float>& numbers) {
  std::string text;
  for (const float number : numbers) text += (text.empty() ? "" : ",") + exact(number);
  return text;
}

void add_standard(Properties& all, const std::string& whose, const std::optional<Standard>& standard) {
  if (!standard) return;
  all.emplace_back(whose + "_mean", list_of(standard->mean));
  all.emplace_back(whose + "_std", list_of(standard->deviation));
}

}  // namespace

Properties properties(const std::vector<std::string>& class_names, const std::string& task,
                      const std::optional<Standard>& input_standard, const std::optional<Standard>& output_standard) {
  Properties all;
  if (!class_names.empty()) all.emplace_back("class_names", joined(class_names, "\n"));
  if (!task.empty()) all.emplace_back("task", task);
  add_standard(all, "input", input_standard);
  add_standard(all, "output", output_standard);
  return all;
}

}  // namespace miniqat::exporters
