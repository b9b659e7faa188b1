#include "exporters/tflite/rules.h"

#include <algorithm>
#include <cmath>

namespace miniqat::exporters {

using integer::Clamp;
using integer::Grid;
using tflite_schema::Activation;
using tflite_schema::Padding;

namespace {

constexpr double kRelu6Bound = 6;
/// Runtimes round 6 / scale in their own ways; closer to a tie than this they may differ.
constexpr double kTieMargin = 1e-3;

/// The bounds that a runtime gives RELU or RELU6; nothing where runtimes may disagree.
std::optional<Clamp> bounds_of(Activation activation, const Grid& grid) {
  if (activation == Activation::RELU) return Clamp{.min = grid.zero_point, .max = kByteMax};
  const double steps = kRelu6Bound / grid.scale;
  if (std::abs(steps - std::floor(steps) - 0.5) < kTieMargin) return std::nullopt;
  return Clamp{.min = grid.zero_point,
               .max = static_cast<std::int32_t>(std::min<double>(kByteMax, std::round(steps) + grid.zero_point))};
}

bool is_same(const WindowAxis& axis) {
  const std::int64_t span = (axis.window - 1) * axis.dilation + 1;
  const std::int64_t padding = std::max<std::int64_t>((axis.output - 1) * axis.stride + span - axis.input, 0);
  return axis.output == (axis.input + axis.stride - 1) / axis.stride && axis.pad_before == padding / 2;
}

bool is_valid(const WindowAxis& axis) {
  const std::int64_t span = (axis.window - 1) * axis.dilation + 1;
  return axis.pad_before == 0 && axis.input >= span && axis.output == (axis.input - span) / axis.stride + 1;
}

WindowAxis axis_with_borders(const WindowAxis& axis) {
  const auto [before, after] = tflite_borders(axis);
  WindowAxis bordered = axis;
  bordered.input += before + after;
  bordered.pad_before = bordered.pad_after = 0;
  return bordered;
}

}  // namespace

TfliteBounds tflite_bounds(const Grid& grid, const Clamp& clamp, bool fuses, std::int32_t reach) {
  TfliteBounds bounds;
  // The range that the activation leaves: never less than the clamp, and as little more as possible.
  Clamp left{.min = 0, .max = reach};
  if (fuses)
    for (const Activation activation : {Activation::RELU, Activation::RELU6}) {
      const std::optional<Clamp> own = bounds_of(activation, grid);
      if (!own || own->min > clamp.min || own->max < clamp.max) continue;
      if (std::max(own->min, left.min) == left.min && std::min(own->max, left.max) == left.max) continue;
      bounds.activation = activation;
      left = {.min = own->min, .max = std::min(own->max, reach)};
    }
  if (left.min < clamp.min) bounds.at_least = clamp.min;
  if (left.max > clamp.max) bounds.at_most = clamp.max;
  return bounds;
}

std::optional<Padding> tflite_padding(const Window2d& window) {
  if (is_valid(window.rows) && is_valid(window.columns)) return Padding::VALID;
  if (is_same(window.rows) && is_same(window.columns)) return Padding::SAME;
  return std::nullopt;
}

std::array<std::int64_t, 2> tflite_borders(const WindowAxis& axis) {
  const std::int64_t reach = axis.source(axis.output - 1, axis.window - 1);
  return {axis.pad_before, std::max<std::int64_t>(reach + 1 - axis.input, 0)};
}

Window2d with_borders(const Window2d& window) {
  return {.rows = axis_with_borders(window.rows), .columns = axis_with_borders(window.columns)};
}

}  // namespace miniqat::exporters
