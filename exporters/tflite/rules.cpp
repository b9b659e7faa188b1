#include "exporters/tflite/rules.h"

#include <algorithm>
#include <cmath>

#include "core/text/error.h"

namespace miniqat::exporters {

using integer::Clamp;
using integer::Grid;
using integer::Layer;
using integer::LayerKind;
using integer::Operation;
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

/// TensorFlow Lite leaves -128 out, so that two products of bytes fit 16 bits, and -8 as well.
constexpr int kLargestWeight = 127;
constexpr int kLargestInt4Weight = 7;

bool is_int4(const Layer& layer, TfliteIntegers integers) {
  return integers == TfliteIntegers::kInt4 && layer.weight_bits <= kInt4Bits;
}

[[noreturn]] void refuse(const Operation& operation, std::int64_t channel, int weight, std::int32_t zero_point,
                         TfliteIntegers integers, bool int4) {
  const bool for_channels = integers == TfliteIntegers::kInt8ForChannels;
  const int largest = int4 ? kLargestInt4Weight : kLargestWeight;
  fail("tflite: [", type_name(operation.action), " \"", operation.name, "\"] channel ", channel, " has a weight of ",
       weight, " (zero point ", zero_point, "), but TensorFlow Lite's ", int4 ? "INT4" : "int8", " weights, which ",
       for_channels                               ? "scales per channel need"
       : integers == TfliteIntegers::kInt8AsAsked ? "--int8 asks for"
                                                  : "--int4 asks for",
       ", have zero point 0 and reach from -", largest, " to ", largest, "; ",
       for_channels                               ? ""
       : integers == TfliteIntegers::kInt8AsAsked ? "leave out --int8, or "
                                                  : "leave out --int4, or ",
       "train or calibrate with --symmetric-weights and without --full-range-weights",
       for_channels ? ", or export as miniqat, onnx, c or json" : "");
}

/// Less their zero points, a byte for each: in units (TfliteIntegers' int8) or in steps (INT4).
std::vector<std::uint8_t> signed_weights(const Operation& operation, const Layer& layer, TfliteIntegers integers) {
  const bool int4 = is_int4(layer, integers);
  const std::int64_t channels = layer.output_channels();
  std::vector<std::uint8_t> bytes(layer.weights.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) % channels;
    const int units = layer.weight_units(static_cast<std::int64_t>(i));
    const int weight = int4 ? units / (1 << layer.weight_shift()) : units;
    if (std::abs(weight) > (int4 ? kLargestInt4Weight : kLargestWeight))
      refuse(operation, channel, weight, layer.weight_zero_point(channel), integers, int4);
    bytes[i] = static_cast<std::uint8_t>(weight);
  }
  return bytes;
}

/// Two in a byte.
std::vector<std::uint8_t> halves(std::vector<std::uint8_t> bytes) {
  for (std::uint8_t& byte : bytes) byte &= 0xf;
  return integer::pack(bytes, kInt4Bits);
}

/// Biases in units as biases in steps of the weights, to the nearest, ties upwards.
std::vector<std::int32_t> coarse_bias(const Layer& layer) {
  const int shift = layer.weight_shift();
  std::vector<std::int32_t> bias;
  for (const std::int32_t value : layer.bias)
    bias.push_back(static_cast<std::int32_t>((std::int64_t{value} + (1 << shift) / 2) >> shift));
  return bias;
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

TfliteWeights tflite_weights(const Operation& operation, const Layer& layer, TfliteIntegers integers) {
  using tflite_schema::TensorType;
  const bool is_signed = integers != TfliteIntegers::kUInt8, int4 = is_int4(layer, integers);
  if (!is_signed && layer.per_channel())
    fail("tflite: [", type_name(operation.action), " \"", operation.name,
         "\"] has scales per channel, which uint8 does not support");
  TfliteWeights result = {.type = int4        ? TensorType::INT4
                                  : is_signed ? TensorType::INT8
                                              : TensorType::UINT8,
                          .scales = int4 ? layer.weight_scales : layer.unit_scales(),
                          .bias = int4 ? coarse_bias(layer) : layer.bias};
  if (is_signed) {
    result.bytes = signed_weights(operation, layer, integers);
    result.zero_points.resize(layer.weight_scales.size());
  } else {
    result.bytes = layer.weights;
    for (std::uint8_t& weight : result.bytes) weight = static_cast<std::uint8_t>(weight << layer.weight_shift());
    result.zero_points = {layer.weight_zero_point(0) << layer.weight_shift()};
  }
  const auto extent = [&](int axis) { return static_cast<std::int32_t>(layer.filter[axis]); };
  if (layer.kind == LayerKind::kDepthwiseConv2d) {
    result.shape = {1, extent(0), extent(1), extent(2) * extent(3)};
    result.channel_axis = layer.per_channel() ? 3 : 0;
  } else {
    result.bytes = integer::transpose(result.bytes, layer.filter.elements() / layer.filter[-1]);
    if (layer.kind == LayerKind::kConv2d)
      result.shape = {extent(3), extent(0), extent(1), extent(2)};
    else
      result.shape = {extent(1), extent(0)};
  }
  if (int4) result.bytes = halves(std::move(result.bytes));
  return result;
}

}  // namespace miniqat::exporters
