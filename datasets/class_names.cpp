#include "datasets/class_names.h"

#include <algorithm>

#include "core/text/classic.h"

namespace miniqat::datasets {
namespace {

bool is_class_number(const std::string& text) {
  return !text.empty() && text.size() <= 9 && std::ranges::all_of(text, is_ascii_digit);
}

}  // namespace

void sort_classes(std::vector<std::string>& names) {
  std::ranges::sort(names);
  if (std::ranges::all_of(names, is_class_number))
    std::ranges::stable_sort(names, {}, [](const std::string& name) { return std::stol(name); });
}

std::vector<std::string> numbers_below(int count) {
  std::vector<std::string> names;
  for (int number = 0; number < count; ++number) names.push_back(std::to_string(number));
  return names;
}

}  // namespace miniqat::datasets
