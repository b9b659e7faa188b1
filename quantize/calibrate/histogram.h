#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quantize/affine.h"

namespace miniqat::quantize {

/// A value that stands for `count` of them.
struct WeightedValue {
  float value = 0;
  double count = 0;
};

/// Counts of values, in 2048 bins to each power of two and each sign. Floats with the same sign, exponent and first 11
/// bits of their mantissa share a bin, which is at most a 2048th of its values wide. So nothing need be known of the
/// range before the first value, one outlier does not coarsen the bins of all others, and the result does not depend on
/// the order in which values came. Denormals count as 0. Takes 16 KiB for each power of two that occurs, with each
/// sign. Throws nothing but std::bad_alloc.
class Histogram {
 public:
  /// Returns whether all values are finite; those that are not go uncounted, the others count in any case.
  bool add(std::span<const float> values);

  /// The number of finite values.
  std::int64_t count() const { return count_; }
  /// Smallest and largest value; [0, 0] before the first.
  Range<float> extremes() const { return extremes_; }

  /// The narrowest range, up to the width of a bin at each end, that leaves at most 100 - percent per cent of the
  /// values below and as many above it; 50 < percent <= 100, which the caller sees to. Never wider than extremes(). It
  /// need not contain 0. [0, 0] before the first value.
  Range<float> percentile(double percent) const;

  /// The bins that are not empty as their middles, ascending; the counts add up to count().
  std::vector<WeightedValue> values() const;

 private:
  static constexpr int kMantissaBits = 11;
  using Octave = std::array<std::int64_t, 1 << kMantissaBits>;
  struct Bin {
    float low;
    float high;
    std::int64_t count;
  };

  /// Ascending, none empty; cut to the extremes.
  std::vector<Bin> bins() const;

  /// One for each sign and exponent; null where no value fell.
  std::array<std::unique_ptr<Octave>, 512> octaves_;
  std::int64_t count_ = 0;
  Range<float> extremes_;
};

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
