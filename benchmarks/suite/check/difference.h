#pragma once

#include <span>
#include <string>
#include <vector>

#include "quantize/affine.h"

namespace miniqat::benchmarks {

/// Numbers that a kernel made, and those that the reference makes of the same x.
struct Comparison {
  std::span<const float> x;
  std::span<const float> expected;
  std::span<const float> got;
  /// Element i belongs to grids[i % size]; empty where grids do not matter.
  std::span<const quantize::Affine<float>> grids;
};

/// "element 5 of 17 (channel 2): expected 0.25, got 0.5 for x = 0.3; elements 3 to 7: x ..., expected ..., got ...;
/// grid: scale ..." for the first element whose bits differ, where any NaN is like any other. Empty when there is none.
std::string difference(const Comparison& all);

}  // namespace miniqat::benchmarks
