#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "core/tensors/shard_statistic.h"

namespace miniqat {

/// The ends of a range of real numbers.
template <class T>
struct Range {
  T min = 0;
  T max = 0;
};

/// What the tensor of one step shows of its range, per channel.
template <class T>
struct Observation {
  std::span<Range<T>> ranges;
  /// The tensor holds a NaN. (The ranges leave NaNs aside; infinities show up in them.)
  bool has_nan = false;
};

/// The sums behind the gradients of a range's ends, all 0 for an empty grid.
struct RangeSums {
  /// dy where x lies below the grid of the range, and where it lies above.
  double below = 0;
  double above = 0;
  /// dy * (y - x) in between, with y being x rounded.
  double inside = 0;
};

/// Leaves what a slice shows for the other slices of its batch: one statistic a channel. A NaN anywhere makes all of
/// them NaN. Nothing to do where `statistics` is empty.
template <class T>
void leave_observation(const Observation<T>& observation, std::span<ShardStatistic> statistics) {
  for (std::size_t c = 0; c < statistics.size(); ++c) {
    const Range<T> range = observation.ranges[c];
    statistics[c] = {.kind = ShardStatistic::Kind::kRange,
                     .a = observation.has_nan ? NAN : double{range.min},
                     .b = observation.has_nan ? NAN : double{range.max}};
  }
}

/// What the slices of a batch have left, put together; as many `ranges` as statistics.
template <class T>
Observation<T> observation_of(std::span<const ShardStatistic> statistics, std::span<Range<T>> ranges) {
  Observation<T> observation{ranges};
  for (std::size_t c = 0; c < statistics.size(); ++c) {
    ranges[c] = {static_cast<T>(statistics[c].a), static_cast<T>(statistics[c].b)};
    observation.has_nan = observation.has_nan || std::isnan(statistics[c].a);
  }
  return observation;
}

}  // namespace miniqat
