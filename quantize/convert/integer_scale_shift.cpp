#include "quantize/convert/integer_scale_shift.h"

#include <algorithm>
#include <cmath>

#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "layers/elementwise.h"

namespace miniqat::quantize {
namespace {

constexpr int kBits = 8;
constexpr std::uint8_t kZeroPoint = 128;
/// The largest weight that TensorFlow Lite has, so that biases, counted in its scale, are fine.
constexpr int kLargest = 127;

struct FactorAndOffset {
  double factor, offset;
};

FactorAndOffset factor_and_offset(const Node& node, int x, double constant) {
  if (node.as<layers::Mul>()) return {constant, 0};
  if (node.as<layers::Div>()) return {1 / constant, 0};
  if (node.as<layers::Sub>()) return x == 0 ? FactorAndOffset{1, -constant} : FactorAndOffset{-1, constant};
  return {1, constant};
}

using integer::Layer;

/// Changes the sign of each weight of one channel: of its distance from the zero point.
void mirror(Layer& layer, std::int64_t channel) {
  const std::int64_t channels = layer.output_channels();
  const std::int32_t last = (1 << layer.weight_bits) - 1, zero_point = layer.weight_zero_point(channel);
  bool stays = true;
  for (auto i = static_cast<std::size_t>(channel); i < layer.weights.size(); i += static_cast<std::size_t>(channels))
    stays = stays && 2 * zero_point >= layer.weights[i] && 2 * zero_point - layer.weights[i] <= last;
  const std::int32_t ends = stays ? 2 * zero_point : last;
  for (auto i = static_cast<std::size_t>(channel); i < layer.weights.size(); i += static_cast<std::size_t>(channels))
    layer.weights[i] = static_cast<std::uint8_t>(ends - layer.weights[i]);
  layer.weight_zero_points[channel] = ends - zero_point;
}

/// Input 1 gamma, 2 beta, 3 mean, 4 variance.
std::span<const float> parameter(const Node& batch_norm, const StaticValues& values, int input) {
  return values.value(batch_norm.input(input)).values<float>();
}

void make_zero(Layer& layer, std::int64_t channel) {
  const std::int64_t channels = layer.output_channels();
  for (auto i = static_cast<std::size_t>(channel); i < layer.weights.size(); i += static_cast<std::size_t>(channels))
    layer.weights[i] = static_cast<std::uint8_t>(layer.weight_zero_point(channel));
}

}  // namespace

ScaleShift scale_shift_of(const Node& node, int x, const Tensor& constant) {
  const Output summand = node.input(x), other = node.input(1 - x);
  const std::int64_t channels = summand.shape().rank() > 0 ? summand.shape().channels() : 1;
  const bool fits =
      constant.elements() == 1 || (constant.elements() == channels && constant.shape().channels() == channels);
  if (!fits || node.output().shape() != summand.shape())
    fail(describe(node), " combines ", summand.name(), " ", summand.shape(), " with ", other.name(), " ",
         constant.shape(), ": an integer model takes one number, or one for each channel");
  ScaleShift scale_shift;
  for (const float number : constant.values<float>()) {
    const auto [factor, offset] = factor_and_offset(node, x, double{number});
    if (!std::isfinite(factor) || !std::isfinite(offset)) fail(describe(node), " divides by ", number);
    scale_shift.factors.push_back(factor);
    scale_shift.offsets.push_back(offset);
  }
  return scale_shift;
}

ScaleShift composed(const ScaleShift& first, const ScaleShift& second) {
  ScaleShift scale_shift;
  for (std::size_t c = 0; c < std::max(first.factors.size(), second.factors.size()); ++c) {
    const std::size_t a = first.by_channel() ? c : 0, b = second.by_channel() ? c : 0;
    scale_shift.factors.push_back(second.factors[b] * first.factors[a]);
    scale_shift.offsets.push_back(second.factors[b] * first.offsets[a] + second.offsets[b]);
  }
  return scale_shift;
}

std::vector<double> scale_shift_values(const ScaleShift& scale_shift, const integer::Grid& input) {
  std::vector<double> values;
  for (std::int32_t q = 0; q <= input.quant_max(); ++q)
    values.push_back(scale_shift.factors[0] * double{integer::dequantize(input, q)} + scale_shift.offsets[0]);
  return values;
}

integer::Layer scale_shift_layer(const ScaleShift& scale_shift, const Shape& images) {
  const auto channels = static_cast<std::int64_t>(scale_shift.factors.size());
  integer::Layer layer = {.kind = integer::LayerKind::kDepthwiseConv2d,
                          .window = {.rows = {.input = images[0], .output = images[0]},
                                     .columns = {.input = images[1], .output = images[1]}},
                          .filter = {1, 1, channels, 1},
                          .weight_bits = kBits};
  const bool shares =
      std::ranges::all_of(scale_shift.factors, [&](double factor) { return factor == scale_shift.factors[0]; });
  for (std::size_t c = 0; c < scale_shift.factors.size(); ++c) {
    const double factor = scale_shift.factors[c];
    const auto scale = static_cast<float>(std::abs(factor) / kLargest);
    if (!std::isfinite(scale)) fail("channel ", c, " is multiplied by ", factor);
    // What is too small for a scale is 0.
    const bool is_zero = !std::isnormal(scale);
    layer.weights.push_back(is_zero ? kZeroPoint : factor < 0 ? kZeroPoint - kLargest : kZeroPoint + kLargest);
    if (c > 0 && shares) continue;
    layer.weight_scales.push_back(is_zero ? 1 : scale);
    layer.weight_zero_points.push_back(kZeroPoint);
  }
  return layer;
}

void scale_channels(Layer& layer, std::span<const double> factors) {
  const auto channels = static_cast<std::size_t>(layer.output_channels());
  if (!layer.per_channel()) {
    layer.weight_scales.assign(channels, layer.weight_scale(0));
    layer.weight_zero_points.assign(channels, layer.weight_zero_point(0));
  }
  for (std::size_t o = 0; o < channels; ++o) {
    const auto channel = static_cast<std::int64_t>(o);
    const auto scale = static_cast<float>(layer.weight_scales[o] * std::abs(factors[o]));
    if (!std::isfinite(scale)) fail("channel ", o, " multiplies its weights by ", factors[o]);
    if (!std::isnormal(scale)) {
      make_zero(layer, channel);
      continue;
    }
    layer.weight_scales[o] = scale;
    if (factors[o] < 0) mirror(layer, channel);
  }
}

ScaleShift scale_shift_of_batch_norm(const Node& batch_norm, const StaticValues& values) {
  const layers::BatchNormAttributes& attributes = *batch_norm.as<layers::BatchNorm>();
  if (attributes.is_training) fail(describe(batch_norm), " is one for training: convert the evaluation graph");
  ScaleShift scale_shift;
  for (std::size_t c = 0; c < parameter(batch_norm, values, 1).size(); ++c) {
    const double squared_sigma = parameter(batch_norm, values, 4)[c] + attributes.epsilon;
    scale_shift.factors.push_back(parameter(batch_norm, values, 1)[c] / std::sqrt(squared_sigma));
    if (!std::isfinite(scale_shift.factors[c]))
      fail(describe(batch_norm), " divides channel ", c, " by the root of ", squared_sigma);
    const double mean = parameter(batch_norm, values, 3)[c];
    scale_shift.offsets.push_back(parameter(batch_norm, values, 2)[c] - mean * scale_shift.factors[c]);
  }
  return scale_shift;
}

}  // namespace miniqat::quantize
