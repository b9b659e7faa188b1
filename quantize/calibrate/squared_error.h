#pragma once

#include <vector>

#include "quantize/affine.h"
#include "quantize/calibrate/histogram.h"

namespace miniqat::quantize {

/// The squared error of quantizing a set of values, for one grid after another. Throws nothing but std::bad_alloc.
class SquaredError {
 public:
  /// `values` in any order, all finite, with counts >= 0, which the caller sees to; none at all is a set, too.
  explicit SquaredError(std::vector<WeightedValue> values);

  /// The sum over all values of count * (fake_quantize(grid, value) - value)^2, up to rounding: in squares of the
  /// values' unit. Takes as many steps as there are integers on the grid, or values if these are fewer, and in each a
  /// binary search. NaN for a grid of NaNs, unless there are no values.
  double of(const Affine<float>& grid) const;

  /// Smallest and largest value; [0, 0] when there is none.
  Range<float> extremes() const;

 private:
  std::vector<float> values_;
  /// The number, the sum and the sum of squares of the values before i. With them, the values that share an integer, a
  /// run of neighbours, need not be visited: sum of (v - r)^2 = sum of v^2 - 2 r * sum of v + r^2 * number.
  std::vector<double> counts_, sums_, squares_;
};

/// The range whose grid has the least squared error: a search over the range of the values (widened to contain 0) and
/// shrunken ones, down to a 215th of it. On symmetric grids, and where one end is 0, in steps of 2^(1/128); otherwise
/// each end for itself in steps of 2^(1/4), then around the best of these in steps of 2^(1/32) and 2^(1/128). Never
/// worse than the range of all values, which wins ties. What is returned contains 0 and is a range for grid_of() with
/// the same options, which widens it where the grid is symmetric. [0, 0] for no values.
Range<float> least_squares_range(const SquaredError& error, const GridOptions& options);

}  // namespace miniqat::quantize
