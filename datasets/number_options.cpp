#include "datasets/number_options.h"

namespace miniqat::datasets {

std::span<const std::string_view> names_of(Inputs) {
  static constexpr std::string_view kNames[] = {"auto", "pictures", "numbers"};
  return kNames;
}

std::span<const std::string_view> names_of(Answers) {
  static constexpr std::string_view kNames[] = {"auto", "classes", "targets"};
  return kNames;
}

}  // namespace miniqat::datasets
