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
  result.has_nan = min_max(x.data(), std::ssize(x), min, max);
  for (std::size_t c = 0; c < count; ++c) result.ranges[c] = {min[c], max[c]};
  return result;
}

template <class T>
bool widen(Observation<T>& observation, const GridOptions& options) {
  bool finite = !observation.has_nan;
  for (Range<T>& range : observation.ranges) {
    range = widen_to_zero(range);
    if (options.symmetric) range = widen_symmetric(range, options);
    // Whether -0 or 0 was found depends on who looked first; adding 0 makes both 0.
    range = {range.min + T(0), range.max + T(0)};
    finite = finite && std::isfinite(range.min) && std::isfinite(range.max);
  }
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  if (!finite) std::ranges::fill(observation.ranges, Range<T>{kNan, kNan});
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

template bool widen(Observation<float>&, const GridOptions&);
template bool widen(Observation<double>&, const GridOptions&);
template float move_towards(float, float, double);
template double move_towards(double, double, double);

}  // namespace miniqat::quantize
