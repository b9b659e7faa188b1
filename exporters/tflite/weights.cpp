#include "exporters/tflite/weights.h"

#include <algorithm>

#include "core/error.h"
#include "integer/transpose.h"

namespace miniqat::exporters {

using integer::Layer;
using integer::LayerKind;
using integer::Model;
using integer::Operation;

namespace {

/// TensorFlow Lite leaves -128 out, so that two products of bytes fit 16 bits.
constexpr int kLargestWeight = 127;

std::vector<std::uint8_t> signed_weights(const Operation& operation, const Layer& layer, bool as_asked) {
  const std::int64_t channels = layer.output_channels();
  std::vector<std::uint8_t> bytes(layer.weights.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) % channels;
    const int weight = layer.weight_units(static_cast<std::int64_t>(i));
    if (std::abs(weight) > kLargestWeight)
      fail("tflite: [", type_name(operation.action), " \"", operation.name, "\"] channel ", channel,
           " has a weight of ", weight, " (zero point ", layer.weight_zero_point(channel),
           "), but TensorFlow Lite's int8 weights, which ", as_asked ? "--int8 asks for" : "scales per channel need",
           ", have zero point 0 and reach from -", kLargestWeight, " to ", kLargestWeight, "; ",
           as_asked ? "leave out --int8, or train or calibrate with --symmetric-weights"
                    : "train or calibrate with --symmetric-weights, or export as miniqat, onnx, c or json");
    bytes[i] = static_cast<std::uint8_t>(weight);
  }
  return bytes;
}

}  // namespace

TfliteIntegers tflite_integers(const Model& model, bool int8) {
  const bool per_channel = std::ranges::any_of(model.operations, [](const Operation& operation) {
    const auto* layer = std::get_if<Layer>(&operation.action);
    return layer != nullptr && layer->per_channel();
  });
  if (per_channel) return TfliteIntegers::kInt8ForChannels;
  return int8 ? TfliteIntegers::kInt8AsAsked : TfliteIntegers::kUInt8;
}

TfliteWeights tflite_weights(const Operation& operation, const Layer& layer, TfliteIntegers integers) {
  const bool is_signed = integers != TfliteIntegers::kUInt8;
  if (!is_signed && layer.per_channel())
    fail("tflite: [", type_name(operation.action), " \"", operation.name,
         "\"] has scales per channel, which uint8 does not support");
  TfliteWeights result = {.shape = {}, .bytes = {}, .zero_points = {}};
  if (is_signed) {
    result.bytes = signed_weights(operation, layer, integers == TfliteIntegers::kInt8AsAsked);
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
    return result;
  }
  result.bytes = integer::transpose(result.bytes, layer.filter.elements() / layer.filter[-1]);
  if (layer.kind == LayerKind::kConv2d)
    result.shape = {extent(3), extent(0), extent(1), extent(2)};
  else
    result.shape = {extent(1), extent(0)};
  return result;
}

}  // namespace miniqat::exporters
