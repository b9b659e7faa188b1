#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>

#include "quantize/affine.h"
#include "quantize/range_kind.h"

// The specification of FakeQuant, over float and double, from the numbers of a tensor to its gradients. With the fast
// form it shares the structs of ranges and grids. Element i of a tensor belongs to channel i % channels, and ranges[c]
// and grids[c] are those of channel c; per tensor there is one channel.
namespace miniqat::quantize::reference {

/// The range of each channel, in `ranges`.
template <class T>
Observation<T> observe(std::span<const T> x, std::span<Range<T>> ranges) {
  const T infinity = std::numeric_limits<T>::infinity();
  std::ranges::fill(ranges, Range<T>{infinity, -infinity});
  Observation<T> result{ranges};
  for (std::size_t i = 0; i < x.size(); ++i) {
    Range<T>& range = ranges[i % ranges.size()];
    if (std::isnan(x[i])) result.has_nan = true;
    if (x[i] < range.min) range.min = x[i];
    if (x[i] > range.max) range.max = x[i];
  }
  return result;
}

/// The least range that contains `range` and 0, and with `symmetric` has its ends at the ratio of those integers that
/// lie beside the zero point in the middle: -1 in narrow range, else -(2^bits - 2) / 2^bits. NaN stays NaN.
template <class T>
Range<T> widened(Range<T> range, const GridOptions& options) {
  if (range.min > 0) range.min = 0;
  if (range.max < 0) range.max = 0;
  if (!options.symmetric) return range;
  const T integers = static_cast<T>(1 << options.bits);
  const T ratio = options.narrow_range ? T(-1) : -(integers - 2) / integers;
  const T min_for_max = range.max / ratio, max_for_min = range.min * ratio;
  if (min_for_max < range.min) range.min = min_for_max;
  if (max_for_min > range.max) range.max = max_for_min;
  return range;
}

/// Widens what a tensor shows. If it has a NaN or an infinity, all its ranges become NaN, and the result is false.
template <class T>
bool widen_observed(Observation<T>& observation, const GridOptions& options) {
  bool finite = !observation.has_nan;
  for (Range<T>& range : observation.ranges) {
    range = widened(range, options);
    if (range.min == 0) range.min = 0;  // of -0 and 0, always 0
    if (range.max == 0) range.max = 0;
    if (!std::isfinite(range.min) || !std::isfinite(range.max)) finite = false;
  }
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (Range<T>& range : observation.ranges)
    if (!finite) range = {nan, nan};
  return finite;
}

/// How a training step finds a range: the attributes of FakeQuant that matter to it.
struct RangeRule {
  RangeKind kind = RangeKind::kMovingAverage;
  double ema_decay = 0.999;
  GridOptions grid = {};
};

/// The ranges of a training step, from those that its tensor shows: stored in min and max, which have the last step's,
/// and put in the place of what was observed. A moving average with decay d is sum(d^(t-i) value_i) / sum(d^(t-i)) over
/// the steps i = 1..t, so the newest value has the weight (1 - d) / (1 - d^t); `num_updates`, null for kinds that do
/// not count steps, is t, up to 2^24. A range of all values takes the place of the stored one when t is 1, and later
/// only widens it. Nothing is stored of a tensor with a NaN or an infinity.
template <class T>
void learn_ranges(const RangeRule& rule, Observation<T>& observation, T* min, T* max, T* num_updates) {
  if (!widen_observed(observation, rule.grid)) return;
  if (num_updates != nullptr) *num_updates = std::clamp(*num_updates + 1, T(1), T(16777216));
  double weight = 1;
  if (rule.kind == RangeKind::kMovingAverage) {
    const double d = rule.ema_decay;
    weight = (1 - d) / (1 - std::pow(d, static_cast<double>(*num_updates)));
  }
  const auto average = [weight](T before, T value) {
    return weight == 1 ? value : static_cast<T>(before + (static_cast<double>(value) - before) * weight);
  };
  for (std::size_t c = 0; c < observation.ranges.size(); ++c) {
    Range<T>& range = observation.ranges[c];
    if (rule.kind == RangeKind::kAllValues && *num_updates > 1) {
      if (min[c] < range.min) range.min = min[c];
      if (max[c] > range.max) range.max = max[c];
    }
    min[c] = average(min[c], observation.ranges[c].min);
    max[c] = average(max[c], observation.ranges[c].max);
    observation.ranges[c] = {min[c], max[c]};
  }
}

/// (max - min) / steps, or the least power of two whose grid, of as many steps rounded up to a power of two, is as
/// wide.
inline double scale_over(double width, int steps, bool power_of_two) {
  if (!power_of_two || !(width > 0) || std::isinf(width)) return width / steps;
  double rounded_steps = 1;
  while (rounded_steps < steps) rounded_steps *= 2;
  double scale = 1;
  while (scale * rounded_steps < width) scale *= 2;
  while (scale / 2 * rounded_steps >= width) scale /= 2;
  return scale;
}

/// The grid of a stored range, as affine.h derives it; here for float in double, and for double in long double.
template <class T>
Affine<T> grid(Range<T> stored, const GridOptions& options) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const Range<T> range = widened(stored, options);
  const int lowest = options.narrow_range ? 1 : 0, highest = (1 << options.bits) - 1, steps = highest - lowest;
  const Wide min = range.min, max = range.max;
  const double scale = scale_over(range.max - double{range.min}, steps, options.power_of_two);
  Affine<T> grid = {.scale = 1, .zero_point = T(lowest), .quant_min = T(lowest), .quant_max = T(highest)};
  if (scale < std::numeric_limits<T>::min()) return grid;
  const double zero_point = std::round(lowest + static_cast<double>(-min * steps / (max - min)));
  grid.zero_point = static_cast<T>(zero_point);
  if (zero_point < lowest) grid.zero_point = T(lowest);
  if (zero_point > highest) grid.zero_point = T(highest);
  grid.scale = static_cast<T>(scale);
  grid.nudged_min = (grid.quant_min - grid.zero_point) * grid.scale;
  grid.nudged_max = (grid.quant_max - grid.zero_point) * grid.scale;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  return std::isfinite(grid.nudged_max - grid.nudged_min) ? grid : Affine<T>{nan, nan, nan, nan, nan, nan};
}

/// The coefficient of dampening in the step that is the `step`-th to quantize: half a cosine from 0 to `dampening` over
/// so many steps.
inline double dampening_at(double dampening, std::int64_t steps, std::int64_t step) {
  if (step >= steps) return dampening;
  const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps);
  return dampening * (1 - std::cos(angle)) / 2;
}

/// x on the grid: clamped to its ends, then rounded to the nearest number, ties upwards. NaN stays NaN.
template <class T>
T rounded(const Affine<T>& grid, T x) {
  if (x < grid.nudged_min) x = grid.nudged_min;
  if (x > grid.nudged_max) x = grid.nudged_max;
  const T q = grid.quant_min + std::floor((x - grid.nudged_min) / grid.scale + T(0.5));
  return (q - grid.zero_point) * grid.scale;
}

/// y may be x.
template <class T>
void fake_quant_forward(std::span<const T> x, std::span<const Affine<T>> grids, T* y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = rounded(grids[i % grids.size()], x[i]);
}

/// dx = dy inside the range, and everywhere on an empty grid, where values could else never leave 0 again; otherwise 0.
/// d_min[c] sums dy where x < nudged_min, d_max[c] where x > nudged_max; an empty grid has neither. dx may be dy, and
/// any of the results null.
template <class T>
void fake_quant_backward(std::span<const T> x, const T* dy, std::span<const Affine<T>> grids, T* dx, T* d_min,
                         T* d_max) {
  for (std::size_t c = 0; c < grids.size(); ++c) {
    const Affine<T>& grid = grids[c];
    double below = 0, above = 0;
    for (std::size_t i = c; i < x.size(); i += grids.size()) {
      if (!grid.empty() && x[i] < grid.nudged_min) below += dy[i];
      if (!grid.empty() && x[i] > grid.nudged_max) above += dy[i];
      const bool passes = grid.empty() || (x[i] >= grid.nudged_min && x[i] <= grid.nudged_max);
      if (dx) dx[i] = passes ? dy[i] : T(0);
    }
    if (d_min) d_min[c] = static_cast<T>(below);
    if (d_max) d_max[c] = static_cast<T>(above);
  }
}

/// dx += factor * (x - y) inside the range, y being x rounded; an empty grid gets nothing.
template <class T>
void add_dampening(std::span<const T> x, std::span<const Affine<T>> grids, double factor, T* dx) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Affine<T>& grid = grids[i % grids.size()];
    if (!grid.empty() && x[i] >= grid.nudged_min && x[i] <= grid.nudged_max)
      dx[i] += static_cast<T>(factor) * (x[i] - rounded(grid, x[i]));
  }
}

/// From the gradients of the ends of grids to those of the stored ends, which move by the same factors.
template <class T>
void pass_to_stored_ends(std::span<const Range<T>> ranges, std::span<const Affine<T>> grids, T* d_min, T* d_max) {
  for (std::size_t c = 0; c < grids.size(); ++c) {
    if (d_min && ranges[c].min != 0) d_min[c] *= grids[c].nudged_min / ranges[c].min;
    if (d_max && ranges[c].max != 0) d_max[c] *= grids[c].nudged_max / ranges[c].max;
  }
}

/// The term of a learned range in d_min and d_max: per channel, the sum I of dy * (y - x) / width inside the range,
/// taken off d_min and added to d_max. In a symmetric range both ends then share the derivative after the logarithm of
/// its width. An empty grid, and a null result, get nothing. (Here the width is that of the grid, which has rounded
/// ends.)
template <class T>
void add_learned_gradients(std::span<const T> x, const T* dy, std::span<const Affine<T>> grids, bool symmetric,
                           T* d_min, T* d_max) {
  for (std::size_t c = 0; c < grids.size(); ++c) {
    const Affine<T>& grid = grids[c];
    if (grid.empty()) continue;
    double inside = 0, below = 0, above = 0;
    for (std::size_t i = c; i < x.size(); i += grids.size()) {
      if (x[i] < grid.nudged_min)
        below += dy[i];
      else if (x[i] > grid.nudged_max)
        above += dy[i];
      else if (x[i] >= grid.nudged_min)
        inside += dy[i] * (rounded(grid, x[i]) - x[i]);
    }
    const double low = grid.nudged_min, high = grid.nudged_max, share = inside / (high - low);
    const double of_width = low * (below - share) + high * (above + share);
    if (d_min) d_min[c] = static_cast<T>(symmetric ? of_width / (2 * low) : below - share);
    if (d_max) d_max[c] = static_cast<T>(symmetric ? of_width / (2 * high) : above + share);
  }
}

}  // namespace miniqat::quantize::reference
