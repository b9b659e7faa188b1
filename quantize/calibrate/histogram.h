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

  /// By sign and exponent; null where no value fell.
  std::array<std::unique_ptr<Octave>, 512> octaves_;
  std::int64_t count_ = 0;
  Range<float> extremes_;
};

}  // namespace miniqat::quantize
