#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>

namespace miniqat {

/// The class that logits choose: the place of the first of the largest. -1, which is no class, where one is NaN.
template <std::ranges::random_access_range Values>
std::int64_t argmax(const Values& values) {
  const auto is_nan = [](auto value) { return value != value; };
  return std::ranges::any_of(values, is_nan) ? -1 : std::ranges::max_element(values) - values.begin();
}

}  // namespace miniqat
