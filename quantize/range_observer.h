#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/scratch.h"
#include "core/shard_statistic.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

/// Minimum and maximum of x, whose element i belongs to channel i % channels. x must not be empty. Parallel; the result
/// does not depend on the number of threads. Takes the ranges' memory from `scope`.
Observation<float> observe(std::span<const float> x, std::int64_t channels, ScratchScope& scope);

/// For other slices of the same batch: one statistic a channel. A NaN anywhere makes all of them NaN. Nothing to do
/// where `statistics` is empty.
template <class T>
void leave(const Observation<T>& observation, std::span<ShardStatistic> statistics);
/// What the slices of a batch have left, put together. `observation` has room for as many ranges.
template <class T>
void take(std::span<const ShardStatistic> statistics, Observation<T>& observation);

/// Widens the observed ranges to contain 0 and, if asked, to be symmetric. Returns whether all of them are finite. If
/// not, the tensor says nothing about its range, and nothing may be learned from it: all become NaN.
bool widen(Observation<float>& observation, const GridOptions& options);

/// The most updates that a moving average counts: the last whole number up to which float32 counts without gaps. d^t is
/// then 0 for any decay in use, and counting on would not change a thing.
inline constexpr std::int64_t kMaxUpdates = std::int64_t{1} << 24;

/// The weight of the newest value in a zero-debiased moving average, when it is number t (1 is the first):
///
///   range_t = range_{t-1} + (value_t - range_{t-1}) * weight_t,   weight_t = (1 - d) / (1 - d^t).
///
/// This is Adam's bias correction (Kingma and Ba 2015, section 3) written so that the corrected average itself is all
/// the state there is. Let biased_t = d * biased_{t-1} + (1 - d) * value_t, biased_0 = 0, range_t = biased_t / c_t and
/// c_t = 1 - d^t. Then
///   c_t * range_t = d * c_{t-1} * range_{t-1} + (1 - d) * value_t,
/// and d * c_{t-1} = d - d^t = c_t - (1 - d). Division by c_t gives the line above. weight_1 is 1: the first value
/// replaces any range before it.
double debiased_weight(double decay, std::int64_t t);

/// One step of the average, in double, rounded to T. Weight 1 gives exactly `value`.
template <class T>
T move_towards(T range, T value, double weight);

}  // namespace miniqat::quantize
