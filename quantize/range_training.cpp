#include "quantize/range_training.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::quantize {
namespace {

/// The least range that contains both; a NaN in `stored` counts for nothing.
Range<float> enclosing(Range<float> range, Range<float> stored) {
  return {std::min(range.min, stored.min), std::max(range.max, stored.max)};
}

/// The range that the grid was made for.
Range<float> range_of_grid(Range<float> range, const GridOptions& options) {
  if (options.power_of_two) {
    const Affine<float> grid = grid_of(range, options);
    return {grid.nudged_min, grid.nudged_max};
  }
  range = widen_to_zero(range);
  return options.symmetric ? widen_symmetric(range, options) : range;
}

Range<double> learned_gradient(const RangeSums& sums, Range<float> range, bool symmetric) {
  const double width = range.max - double{range.min};
  // N * s is the width. Of an empty range nothing was summed up.
  const double inside = sums.inside == 0 ? 0 : sums.inside / width;
  const Range<double> each = {sums.below - inside, sums.above + inside};
  if (!symmetric || width == 0) return each;
  const double of_width = range.min * each.min + range.max * each.max;
  return {of_width / (2 * double{range.min}), of_width / (2 * double{range.max})};
}

/// What an end of the grid moves by when the stored one moves, both by the same factor.
double share_of(float on_grid, float stored) { return stored == 0 ? 1 : on_grid / double{stored}; }

}  // namespace

Observation<float> observe(std::span<const float> x, std::int64_t channels, ScratchScope& scope) {
  const auto count = static_cast<std::size_t>(channels);
  const std::span<float> min = scope.take<float>(count), max = scope.take<float>(count);
  Observation<float> result{scope.take<Range<float>>(count)};
  result.has_nan = column_ranges(x.data(), std::ssize(x), channels, min.data(), max.data());
  for (std::size_t c = 0; c < count; ++c) result.ranges[c] = {min[c], max[c]};
  return result;
}

bool widen(Observation<float>& observation, const GridOptions& options) {
  bool finite = !observation.has_nan;
  for (Range<float>& range : observation.ranges) {
    range = widen_to_zero(range);
    if (options.symmetric) range = widen_symmetric(range, options);
    // Whether -0 or 0 was found depends on who looked first; adding 0 makes both 0.
    range = {range.min + 0.0f, range.max + 0.0f};
    finite = finite && std::isfinite(range.min) && std::isfinite(range.max);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (!finite) std::ranges::fill(observation.ranges, Range<float>{kNan, kNan});
  return finite;
}

double debiased_weight(double decay, std::int64_t t) {
  return (1 - decay) / (1 - std::pow(decay, static_cast<double>(t)));
}

template <class T>
T move_towards(T range, T value, double weight) {
  if (weight == 1) return value;
  const double from = range;
  return static_cast<T>(from + (static_cast<double>(value) - from) * weight);
}

template float move_towards(float, float, double);
template double move_towards(double, double, double);

void update_ranges(const FakeQuantAttributes& attributes, Observation<float>& observation,
                   const StoredRange<float>& stored) {
  if (!widen(observation, attributes.grid_options())) return;
  const RangeKindTraits& kind = traits_of(attributes.range);
  if (kind.counts_steps) {
    float& t = *stored.num_updates;
    t = std::clamp<float>(t + 1, 1, static_cast<float>(kMaxUpdates));
  }
  const double weight =
      kind.averages ? debiased_weight(attributes.ema_decay, static_cast<std::int64_t>(*stored.num_updates)) : 1;
  for (std::size_t c = 0; c < observation.ranges.size(); ++c) {
    Range<float>& range = observation.ranges[c];
    if (attributes.range == RangeKind::kAllValues && *stored.num_updates > 1)
      range = enclosing(range, {stored.min[c], stored.max[c]});
    stored.min[c] = range.min = move_towards(stored.min[c], range.min, weight);
    stored.max[c] = range.max = move_towards(stored.max[c], range.max, weight);
  }
}

void range_gradients(const FakeQuantAttributes& attributes, std::span<const Range<float>> ranges,
                     std::span<const RangeSums> sums, float* d_min, float* d_max) {
  const GridOptions options = attributes.grid_options();
  for (std::size_t c = 0; c < sums.size(); ++c) {
    Range<double> gradient = {sums[c].below, sums[c].above};
    if (traits_of(attributes.range).learned) {
      const Range<float> on_grid = range_of_grid(ranges[c], options);
      gradient = learned_gradient(sums[c], on_grid, options.symmetric);
      if (options.power_of_two) {
        gradient.min *= share_of(on_grid.min, ranges[c].min);
        gradient.max *= share_of(on_grid.max, ranges[c].max);
      }
    }
    if (d_min) d_min[c] = static_cast<float>(gradient.min);
    if (d_max) d_max[c] = static_cast<float>(gradient.max);
  }
}

}  // namespace miniqat::quantize
