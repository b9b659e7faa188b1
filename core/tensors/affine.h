#pragma once

namespace miniqat {

/// A grid of equidistant real numbers, real = scale * (q - zero_point); quantize/affine.h has its arithmetic. All
/// members are NaN when the range was not finite or too wide for T. The integers are kept as T, which holds them
/// exactly.
template <class T>
struct Affine {
  T scale = 1;
  T zero_point = 0;
  T quant_min = 0;
  T quant_max = 0;
  /// The smallest and the largest number on the grid.
  T nudged_min = 0;
  T nudged_max = 0;

  /// The range was [0, 0], or so small that its scale is no normal number: all that is left of the grid is 0.
  bool empty() const { return nudged_min == nudged_max; }
};

}  // namespace miniqat
