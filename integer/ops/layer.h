#pragma once

#include <algorithm>

#include "core/tensors/window.h"
#include "integer/ops/action.h"

namespace miniqat::integer {

enum class LayerKind { kConv2d, kDepthwiseConv2d, kFullyConnected };
inline constexpr std::array<std::string_view, 3> kLayerKindNames = {"Conv2D", "DepthwiseConv2d", "FullyConnected"};

/// sum = bias[o] + sum over taps and input channels of (x - zero point of x) * (w - zero point of w) *
/// 2^weight_shift(); what falls on padding counts nothing. y = requantize(sum, multiplier). Output channel o of a
/// depthwise layer reads input channel o / filter[3].
struct Layer {
  LayerKind kind = LayerKind::kConv2d;
  /// Over images; as it is by default (all 1) for fully connected layers.
  Window2d window = {};
  /// Conv2D [kh, kw, in, out], DepthwiseConv2d [kh, kw, in, multiplier], FullyConnected [in, out].
  Shape filter = {};
  /// 2..8.
  int weight_bits = 8;
  /// In the filter's row-major order, each in [0, 2^weight_bits - 1]. (Narrow range: 0 is not used.)
  std::vector<std::uint8_t> weights = {};
  /// One for all, or one for each output channel.
  std::vector<float> weight_scales = {};
  /// As many as weight_scales, each in [0, 2^weight_bits - 1].
  std::vector<std::int32_t> weight_zero_points = {};
  /// One for each output channel, at scale (input's scale) * (unit scale).
  std::vector<std::int32_t> bias = {};
  /// As many as weight_scales: input's scale * unit scale / output's scale.
  std::vector<Multiplier> multipliers = {};

  std::int64_t output_channels() const {
    return kind == LayerKind::kDepthwiseConv2d ? filter[2] * filter[3] : filter[-1];
  }
  bool per_channel() const { return weight_scales.size() > 1; }
  float weight_scale(std::int64_t channel) const { return weight_scales[per_channel() ? channel : 0]; }
  std::int32_t weight_zero_point(std::int64_t channel) const { return weight_zero_points[per_channel() ? channel : 0]; }
  const Multiplier& multiplier(std::int64_t channel) const { return multipliers[per_channel() ? channel : 0]; }

  /// Sums are counted in units of a 2^weight_shift()-th of the weights' scale: fewer bits make larger steps, on whose
  /// scale biases would be rounded too coarsely.
  int weight_shift() const { return std::max(0, 7 - weight_bits); }
  float unit_scale(std::int64_t channel) const {
    return weight_scale(channel) / static_cast<float>(1 << weight_shift());
  }
  /// As many as weight_scales.
  std::vector<float> unit_scales() const;
  /// Weight i of the filter less its zero point, in units: within +-127 for up to 7 bits, within +-255 for 8.
  std::int32_t weight_units(std::int64_t i) const {
    return (weights[i] - weight_zero_point(i % output_channels())) * (1 << weight_shift());
  }

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& layer, auto& json) {
    if (layer.kind != LayerKind::kFullyConnected) json(layer.window);
    json("filter", layer.filter);
    json("weight_bits", layer.weight_bits, 2, 8);
    json.list("weights", layer.weights, layer.weight_bits);
    json.list("weight_scales", layer.weight_scales);
    json.list("weight_zero_points", layer.weight_zero_points, 8);
    json.list("bias", layer.bias);
    json("multipliers", layer.multipliers);
  }
  /// With `pool`, which Convolution::fuses() with it, the step writes the pool's output. Copies all that it needs,
  /// unless it is left to the plain loops (kMostScratch): then model and operation must stay.
  Step make_step(const Model& model, const Operation& operation, const Operation* pool = nullptr) const;
};

inline void Layer::apply(std::span<const Operand> x, const Result& y) const {
  const std::int64_t out = output_channels(), in = x[0].shape.channels();
  const bool depthwise = kind == LayerKind::kDepthwiseConv2d;
  const std::int64_t fan = depthwise ? 1 : in, multiplicity = out / in;
  std::vector<std::int32_t> sums(y.integers.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = bias[i % out];
  for_each_tap(y.n, window, [&](const Tap& tap) {
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t i = 0; i < fan; ++i)
        sums[tap.output * out + o] += x[0].less_zero_point(tap.input * in + (depthwise ? o / multiplicity : i)) *
                                      weight_units((tap.window * fan + i) * out + o);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) y.put(i, sums[i], multiplier(i % out));
}

}  // namespace miniqat::integer
