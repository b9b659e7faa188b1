#pragma once

#include <optional>
#include <vector>

namespace miniqat::benchmarks {

/// In which the median lies, as far as that is known.
struct Interval {
  double low = 0;
  double high = 0;
};

/// Of the intervals that tables and files have.
inline constexpr double kConfidence = 0.95;

/// Of the median of what `values` are a sample of, whatever its distribution: two of the values, symmetric in their
/// order, as close together as a sign test allows that is wrong in at most 1 - confidence of all cases (Conover,
/// Practical Nonparametric Statistics, section 3.2). None for too few values: 0.95 takes six.
std::optional<Interval> median_interval(std::vector<double> values, double confidence);

/// The speed of `rounds` as a multiple of that of `base`, round by round: both took turns, so what slows the machine
/// for longer than a round slows both. Seconds; of one length.
std::vector<double> paired_speeds(const std::vector<double>& base, const std::vector<double>& rounds);

}  // namespace miniqat::benchmarks
