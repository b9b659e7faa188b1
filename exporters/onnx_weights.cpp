#include "exporters/onnx_weights.h"

#include "integer/packing.h"

namespace miniqat::exporters {
namespace {

using integer::Layer;
using integer::LayerKind;

std::vector<std::int64_t> extents_of(const Layer& layer) {
  const Shape& filter = layer.filter;
  switch (layer.kind) {
    case LayerKind::kFullyConnected:
      return {filter[0], filter[1]};
    case LayerKind::kConv2d:
      return {filter[3], filter[2], filter[0], filter[1]};
    default:
      return {layer.output_channels(), 1, filter[0], filter[1]};
  }
}

/// From miniqat's order, output channels last, to ONNX's.
std::vector<std::uint8_t> in_order(const Layer& layer) {
  if (layer.kind == LayerKind::kFullyConnected) return layer.weights;
  const std::int64_t taps = layer.filter[0] * layer.filter[1];
  const std::int64_t fan = layer.kind == LayerKind::kConv2d ? layer.filter[2] : 1;
  const std::int64_t out = layer.output_channels();
  std::vector<std::uint8_t> ordered(layer.weights.size());
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t i = 0; i < fan; ++i)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        ordered[(o * fan + i) * taps + tap] = layer.weights[(tap * fan + i) * out + o];
  return ordered;
}

std::string bytes_of(const std::vector<std::uint8_t>& values, bool packed) {
  const std::vector<std::uint8_t> bytes = packed ? integer::pack(values, 4) : values;
  return {bytes.begin(), bytes.end()};
}

}  // namespace

OnnxWeights onnx_weights(const Layer& layer, bool packed_4_bits) {
  const bool packed = packed_4_bits && layer.weight_bits <= 4;
  const std::vector<std::uint8_t> zero_points(layer.weight_zero_points.begin(), layer.weight_zero_points.end());
  return {.type = packed ? pb::UINT4 : pb::UINT8,
          .extents = extents_of(layer),
          .bytes = bytes_of(in_order(layer), packed),
          .zero_points = bytes_of(zero_points, packed)};
}

}  // namespace miniqat::exporters
