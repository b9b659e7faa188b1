#include "quantize/range_observer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::quantize {

Observation<float> observe(std::span<const float> x, std::int64_t channels, ScratchScope& scope) {
  const auto count = static_cast<std::size_t>(channels);
  const std::span<float> min = scope.take<float>(count), max = scope.take<float>(count);
  Observation<float> result{scope.take<Range<float>>(count)};
  result.has_nan = column_ranges(x.data(), std::ssize(x), channels, min.data(), max.data());
  for (std::size_t c = 0; c < count; ++c) result.ranges[c] = {min[c], max[c]};
  return result;
}

template <class T>
void leave(const Observation<T>& observation, std::span<ShardStatistic> statistics) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t c = 0; c < statistics.size(); ++c) {
    const Range<T> range = observation.ranges[c];
    statistics[c] = {.kind = ShardStatistic::Kind::kRange,
                     .a = observation.has_nan ? nan : double{range.min},
                     .b = observation.has_nan ? nan : double{range.max}};
  }
}

template <class T>
void take(std::span<const ShardStatistic> statistics, Observation<T>& observation) {
  for (std::size_t c = 0; c < statistics.size(); ++c) {
    observation.ranges[c] = {static_cast<T>(statistics[c].a), static_cast<T>(statistics[c].b)};
    observation.has_nan = observation.has_nan || std::isnan(statistics[c].a);
  }
}

template void leave(const Observation<float>&, std::span<ShardStatistic>);
template void leave(const Observation<double>&, std::span<ShardStatistic>);
template void take(std::span<const ShardStatistic>, Observation<float>&);
template void take(std::span<const ShardStatistic>, Observation<double>&);

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

}  // namespace miniqat::quantize
