#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/scratch.h"
#include "quantize/affine.h"
#include "quantize/fake_quant_attributes.h"

namespace miniqat::quantize {

// What a training step does with the ranges of a quantizer, in the fast backend: it observes them in the step's tensor
// and stores what comes of that, or it finds their gradients.

/// Minimum and maximum of x, whose element i belongs to channel i % channels. x must not be empty. Parallel; the result
/// does not depend on the number of threads. Takes the ranges' memory from `scope`.
Observation<float> observe(std::span<const float> x, std::int64_t channels, ScratchScope& scope);

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

/// The values of a quantizer that a training step changes, per channel; it holds the last step's values when this one
/// begins.
template <class T>
struct StoredRange {
  std::span<T> min;
  std::span<T> max;
  /// Null for kinds of ranges that don't count steps.
  T* num_updates = nullptr;
};

/// Makes the ranges of this step out of what its tensor shows, by the kind of range: stores them, and puts them in the
/// place of what was observed. A tensor with a NaN or an infinity says nothing about its range. The step's ranges are
/// then NaN, and so is every y, so that no later op that ignores NaNs hides the trouble. The stored ranges keep their
/// last good values, also if no loss depends on this node and a run would commit them.
void update_ranges(const FakeQuantAttributes& attributes, Observation<float>& observation,
                   const StoredRange<float>& stored);

/// d_min and d_max (each may be null) of every channel, from what backward summed up over its elements.
///
/// Outside of the range y is one of its ends and follows it: d_min = sum of dy below, d_max = sum of dy above. For a
/// range that is taken as it is, that is all. A learned one also counts what its width does to the numbers inside (LSQ,
/// Esser et al. 2020, eq. 3; with two ends LSQ+, Bhalgat et al. 2020, eq. 6). There y = x + s * r, with r the rounding
/// in steps of the scale s = (max - min) / N, N = quant_max - quant_min. The straight-through estimator holds r, and
/// takes the zero point for an unrounded number:
///   dy/ds = r = (y - x) / s,  so  d_max += sum of dy * (y - x) / (N * s)  and  d_min -= the same.
///
/// A symmetric range has one parameter, its width, and each end takes half of its gradient. D = min * d_min + max *
/// d_max (of the above) is the derivative after the logarithm of the width. d_min becomes D / (2 * min), d_max becomes
/// D / (2 * max). A scale that is a power of two passes its gradient straight through the rounding of its logarithm
/// (Jain et al. 2020, eq. 5): the above holds for the ends of the grid, which move by the factor of the stored ends.
/// Steps that multiply the ends (optim/log_adam.h) then move both by the same factor.
void range_gradients(const FakeQuantAttributes& attributes, std::span<const Range<float>> ranges,
                     std::span<const RangeSums> sums, float* d_min, float* d_max);

}  // namespace miniqat::quantize
