#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "core/tensors/affine.h"
#include "core/tensors/range.h"

namespace miniqat {

struct PackedForm;

}  // namespace miniqat

namespace miniqat::quantize {

// The arithmetic that the trainer, the evaluation graph and the integer engine share: real = scale * (q - zero_point),
// with real 0 always on the grid. The reference (quantize/reference/fake_quant.h) takes only the structs from here.
//
// Every path must give the same bits: reference and fast loops, baseline, AVX2 and AVX-512 code. Two decisions ensure
// that. First, the integer comes from a true division, not from a product with 1/scale. A compiler may contract a
// product followed by + 0.5 into a fused multiply-add if the machine has one (AVX-512), and cannot otherwise. Out of
// cache, memory hides the cost of the division anyway. Second, no other product here is followed by a sum.

using miniqat::Affine;
using miniqat::Observation;
using miniqat::Range;
using miniqat::RangeSums;

/// How integers are laid out over a range.
struct GridOptions {
  /// 2..16.
  int bits = 8;
  /// Integers 1..2^bits-1 instead of 0..2^bits-1.
  bool narrow_range = false;
  /// Moves the zero point to the middle of the grid by widening the range.
  bool symmetric = false;
  /// Rounds the scale to a power of two, so that hardware requantizes by shifts.
  bool power_of_two = false;
};

/// The form of a tensor on such a grid, whatever the range, but for its number of elements; none where the integers do
/// not fit into bytes.
std::optional<PackedForm> packed_form(const GridOptions& options);

/// The smallest range that contains `range` and 0. What is left of an inverted range (min > max) is in order, too:
/// [2, 1] becomes [0, 1] and [1, -1] becomes [0, 0]. NaN stays NaN.
template <class T>
Range<T> widen_to_zero(Range<T> range);

/// Widens a range that contains 0 until max = r * min, with r = -1 in narrow range and -(2^bits - 2) / 2^bits else:
/// the ratio at which zero_point is the middle of the grid, 2^(bits-1). Repeating it changes at most the last bit.
template <class T>
Range<T> widen_symmetric(Range<T> range, const GridOptions& options);

/// The grid for a range that contains 0, moved ("nudged") so that 0 falls on it:
///   scale      = (max - min) / (quant_max - quant_min)
///   zero_point = quant_min - min * (quant_max - quant_min) / (max - min), rounded half away from zero
///   nudged_min = (quant_min - zero_point) * scale, nudged_max = (quant_max - zero_point) * scale.
/// The first two are computed in double or more for every T, and zero_point without the rounded scale: it is a tie for
/// every range [-m, m], which then rounds up whatever m is: 4 bits give -8..7.
/// A scale that is a power of two is the least one whose grid reaches over the range but for one step (in narrow range
/// of 3 bits and more, for one at each end): with L the least power of two that is not below quant_max - quant_min,
///   scale = 2^ceil(log2((max - min) / L))  (Jain et al. 2020, eq. 4)
/// with the same zero point: what the grid has beyond the range, or lacks, is shared by both ends.
/// For [0, 0], and for ranges whose scale would be denormal, the grid is empty(): scale 1, zero_point quant_min, both
/// ends 0, so that the functions below give 0 without ever dividing by 0. A range that is too wide for float32 (its
/// grid's ends lie further apart than the largest number) gives NaN throughout, which whoever takes a grid refuses.
template <class T>
Affine<T> nudge(Range<T> range, const GridOptions& options);

/// The grid that a stored range stands for: widened to 0, widened symmetrically if asked, nudged. Training, evaluation
/// and export all come here, so the same stored numbers always give the same grid.
template <class T>
Affine<T> grid_of(Range<T> range, const GridOptions& options);

/// floor(v) for 0 <= v < 2^22, and NaN for NaN. Adding and subtracting 2^23 (2^52 in double) rounds v to the nearest
/// whole number, which may be one too many. GCC makes vector code of this (a comparison's mask is -1 or 0) also where
/// there is no instruction for std::floor.
template <class T>
[[gnu::always_inline]] inline T floor_positive(T v) {
  constexpr T kNoFraction = T(std::int64_t{1} << (std::numeric_limits<T>::digits - 1));
  const T nearest = (v + kNoFraction) - kNoFraction;
  const std::int32_t overshoot = nearest > v ? -1 : 0;
  return nearest + static_cast<T>(overshoot);
}

/// The integer for x: quant_min + floor((x clamped to the grid - nudged_min) / scale + 0.5). Infinities clamp; NaN
/// gives NaN. Numbers on the grid give exactly the integer that they came from: the three roundings in x - nudged_min
/// amount to less than 2^16 * 3 * 2^-24 of a step, far from the half that would matter.
template <class T>
[[gnu::always_inline]] inline T quantize(const Affine<T>& grid, T x) {
  const T raised = x < grid.nudged_min ? grid.nudged_min : x;
  const T clamped = raised > grid.nudged_max ? grid.nudged_max : raised;
  return grid.quant_min + floor_positive((clamped - grid.nudged_min) / grid.scale + T(0.5));
}

/// The real number for an integer q: (q - zero_point) * scale.
template <class T>
[[gnu::always_inline]] inline T dequantize(const Affine<T>& grid, T q) {
  return (q - grid.zero_point) * grid.scale;
}

/// The nearest number on the grid, ties upwards: 0 gives exactly 0, NaN gives NaN.
template <class T>
[[gnu::always_inline]] inline T fake_quantize(const Affine<T>& grid, T x) {
  return dequantize(grid, quantize(grid, x));
}

/// The straight-through estimator: whether the gradient passes at x, that is where x was not clamped. An empty grid
/// lets every gradient pass, otherwise values that have become 0 could never leave 0 again.
template <class T>
[[gnu::always_inline]] inline bool gradient_passes(const Affine<T>& grid, T x) {
  return ((x >= grid.nudged_min) & (x <= grid.nudged_max)) | grid.empty();
}

}  // namespace miniqat::quantize
