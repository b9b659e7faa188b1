#include "quantize/affine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "core/tensors/packed.h"

namespace miniqat::quantize {
namespace {

/// Holds the product of a T and an integer of 16 bits without rounding it to one of the neighbours of a tie. For float
/// it is exact. For double it has bits to spare, and rounding the quotient to double removes these again.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// -min in units of (max - min) / (quant_max - quant_min), for min <= 0.
template <class T>
double steps_below_zero(Range<T> range, T levels) {
  const Wide<T> min = range.min, max = range.max;
  return static_cast<double>(-min * levels / (max - min));
}

/// 2^ceil(log2(v)) for v > 0, 0 for 0.
double next_power_of_two(double v) {
  if (v == 0) return 0;
  int exponent = 0;
  const double half = std::frexp(v, &exponent);
  return std::ldexp(1.0, half == 0.5 ? exponent - 1 : exponent);
}

template <class T>
double scale_of(Range<T> range, T levels, const GridOptions& options) {
  const double width = range.max - double{range.min};
  if (!options.power_of_two || !(width > 0) || !std::isfinite(width)) return width / levels;
  return next_power_of_two(width / static_cast<double>(std::bit_ceil(static_cast<unsigned>(levels))));
}

}  // namespace

template <class T>
Range<T> widen_to_zero(Range<T> range) {
  // The first argument wins when it is NaN.
  return {std::min(range.min, T(0)), std::max(range.max, T(0))};
}

template <class T>
Range<T> widen_symmetric(Range<T> range, const GridOptions& options) {
  const T levels = static_cast<T>(1 << options.bits);
  const T ratio = options.narrow_range ? T(-1) : -(levels - 2) / levels;
  return {std::min(range.min, range.max / ratio), std::max(range.max, range.min * ratio)};
}

template <class T>
Affine<T> nudge(Range<T> range, const GridOptions& options) {
  Affine<T> grid;
  grid.quant_min = options.narrow_range ? 1 : 0;
  grid.quant_max = static_cast<T>((1 << options.bits) - 1);
  grid.zero_point = grid.quant_min;
  const T levels = grid.quant_max - grid.quant_min;
  const double scale = scale_of(range, levels, options);
  if (scale < std::numeric_limits<T>::min()) return grid;

  grid.scale = static_cast<T>(scale);
  const double zero_point = std::round(grid.quant_min + steps_below_zero(range, levels));
  grid.zero_point = std::clamp(static_cast<T>(zero_point), grid.quant_min, grid.quant_max);
  grid.nudged_min = dequantize(grid, grid.quant_min);
  grid.nudged_max = dequantize(grid, grid.quant_max);
  if (std::isfinite(grid.nudged_max - grid.nudged_min)) return grid;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  return {nan, nan, nan, nan, nan, nan};
}

template <class T>
Affine<T> grid_of(Range<T> range, const GridOptions& options) {
  range = widen_to_zero(range);
  if (options.symmetric) range = widen_symmetric(range, options);
  return nudge(range, options);
}

#define MINIQAT_INSTANTIATE(T)                                     \
  template Range<T> widen_to_zero(Range<T>);                       \
  template Range<T> widen_symmetric(Range<T>, const GridOptions&); \
  template Affine<T> nudge(Range<T>, const GridOptions&);          \
  template Affine<T> grid_of(Range<T>, const GridOptions&);
MINIQAT_INSTANTIATE(float)
MINIQAT_INSTANTIATE(double)
#undef MINIQAT_INSTANTIATE

std::optional<PackedForm> packed_form(const GridOptions& options) {
  if (options.bits > 8) return std::nullopt;
  const int least = options.narrow_range ? 1 : 0, most = (1 << options.bits) - 1, middle = 1 << (options.bits - 1);
  PackedForm form{.lowest = least - most, .highest = most - least, .middle = middle};
  if (options.symmetric) form.lowest = least - middle, form.highest = most - middle;
  return form;
}

}  // namespace miniqat::quantize
