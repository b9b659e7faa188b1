#include "exporters/onnx/weights.h"

#include <algorithm>

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

/// In steps of the weights' grid or in units, less their zero points, and from miniqat's order, output channels last,
/// to ONNX's.
std::vector<std::int32_t> centred(const Layer& layer, bool in_units) {
  const bool connected = layer.kind == LayerKind::kFullyConnected;
  const std::int64_t out = layer.output_channels();
  const std::int64_t fan = layer.kind == LayerKind::kDepthwiseConv2d ? 1 : layer.filter[connected ? 0 : 2];
  const std::int64_t taps = connected ? 1 : layer.filter[0] * layer.filter[1];
  std::vector<std::int32_t> values(layer.weights.size());
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t i = 0; i < fan; ++i)
      for (std::int64_t o = 0; o < out; ++o) {
        const std::int64_t from = (tap * fan + i) * out + o;
        values[connected ? from : (o * fan + i) * taps + tap] =
            in_units ? layer.weight_units(from) : layer.weights[from] - layer.weight_zero_point(o);
      }
  return values;
}

/// In two's complement where there are negative ones.
std::string bytes_of(const std::vector<std::int32_t>& values, bool packed) {
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t value : values) bytes.push_back(static_cast<std::uint8_t>(packed ? value & 15 : value & 255));
  if (packed) bytes = integer::pack(bytes, 4);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

OnnxWeights onnx_weights(const Layer& layer, bool packed_4_bits) {
  const bool packed = packed_4_bits && layer.weight_bits <= 4;
  std::vector<std::int32_t> values = centred(layer, !packed), zero_points(layer.weight_zero_points.size());
  const std::int32_t limit = packed ? 8 : 128;
  const auto fits = [limit](std::int32_t value) { return value >= -limit && value < limit; };
  const bool is_signed = std::ranges::all_of(values, fits);
  if (!is_signed) {
    const std::int64_t out = layer.output_channels();
    const auto count = static_cast<std::int64_t>(values.size());
    const std::int64_t run = layer.kind == LayerKind::kFullyConnected ? 1 : count / out;
    for (std::int64_t i = 0; i < count; ++i) values[i] += layer.weight_zero_point(i / run % out);
    for (std::size_t i = 0; i < zero_points.size(); ++i)
      zero_points[i] = layer.weight_zero_points[i] << layer.weight_shift();
  }
  return {.type = packed ? (is_signed ? pb::INT4 : pb::UINT4) : (is_signed ? pb::INT8 : pb::UINT8),
          .extents = extents_of(layer),
          .bytes = bytes_of(values, packed),
          .zero_points = bytes_of(zero_points, false)};
}

}  // namespace miniqat::exporters
