#include "quantize/convert/integer_batch_norm.h"

#include <cmath>

#include "core/text/error.h"
#include "layers/batch_norm.h"

namespace miniqat::quantize {
namespace {

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

void fold_into_layer(Pending& layer, const Node& batch_norm, const StaticValues& values) {
  const std::vector<double> factors = scale_shift_of_batch_norm(batch_norm, values).factors;
  for (std::size_t o = 0; o < layer.bias.size(); ++o)
    layer.bias[o] =
        factors[o] * (layer.bias[o] - parameter(batch_norm, values, 3)[o]) + parameter(batch_norm, values, 2)[o];
  try {
    scale_channels(std::get<integer::Layer>(layer.action), factors);
  } catch (const Error& error) {
    fail(describe(batch_norm), ": ", error.what());
  }
}

}  // namespace miniqat::quantize
