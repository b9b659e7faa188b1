#include "quantize/convert/integer_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "integer/transpose.h"
#include "quantize/affine.h"
#include "quantize/convert/integer_grid.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {
namespace {

using integer::Layer;

/// Beyond what any other contribution can bring back onto a grid of 8 bits.
constexpr double kStepsBeyondGrid = 512;
/// The scale of a bias if the weights leave it open: far finer than a step, far from 32 bits.
constexpr double kFreeUnits = 1 << 24;
constexpr double kMostUnits = 1 << 30;
constexpr double kLargestMultiplier = (1 << 20) - 1;

/// The channels o that share weight scale i.
bool shares(const Layer& layer, std::int64_t o, std::size_t i) {
  return !layer.per_channel() || o == static_cast<std::int64_t>(i);
}

/// For each output channel: the largest sum of weights' distances to their zero point times 255, what inputs can make
/// of it at most.
std::vector<double> largest_sums(const Layer& layer) {
  const std::int64_t channels = layer.output_channels();
  std::vector<double> sums(static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    const std::int64_t o = static_cast<std::int64_t>(i) % channels;
    sums[o] += 255.0 * std::abs(layer.weight_units(static_cast<std::int64_t>(i)));
  }
  return sums;
}

void coarsen(Layer& layer, std::size_t group, float scale) {
  const std::int64_t channels = layer.output_channels();
  const double ratio = double{layer.weight_scales[group]} / scale;
  const std::int32_t zero_point = layer.weight_zero_points[group];
  for (std::size_t i = 0; i < layer.weights.size(); ++i)
    if (shares(layer, static_cast<std::int64_t>(i) % channels, group))
      layer.weights[i] = static_cast<std::uint8_t>(zero_point + std::lround((layer.weights[i] - zero_point) * ratio));
  layer.weight_scales[group] = scale;
}

/// Makes the biases of one weight scale fit, if need be by another scale.
void fit_scale(Layer& layer, std::size_t group, std::span<const double> bias, std::span<const double> sums,
               float input_scale) {
  double largest_bias = 0, largest_sum = 0;
  for (std::int64_t o = 0; o < layer.output_channels(); ++o)
    if (shares(layer, o, group)) {
      largest_bias = std::max(largest_bias, std::abs(bias[o]));
      largest_sum = std::max(largest_sum, sums[o]);
    }
  const double unit = double{input_scale} * layer.unit_scale(static_cast<std::int64_t>(group));
  const bool free = largest_sum == 0 && largest_bias > 0;
  if (!free && largest_sum + largest_bias / unit < INT32_MAX) return;
  const double coarser = largest_bias / (double{input_scale} * (free ? kFreeUnits : kMostUnits));
  const auto scale = static_cast<float>(std::ldexp(coarser, layer.weight_shift()));
  if (!std::isnormal(scale)) return;
  if (free)
    layer.weight_scales[group] = scale;
  else if (scale > layer.weight_scales[group])
    coarsen(layer, group, scale);
}

}  // namespace

void quantize_weights(Layer& layer, const Node& quantizer, const Tensor& x, const Tensor& min, const Tensor& max,
                      bool transposed) {
  const std::vector<Affine<float>> grids = grids_of(quantizer, min, max);
  layer.filter = x.shape();
  layer.weight_bits = static_cast<int>(quantizer.as<FakeQuant>()->bits);
  layer.weights.clear();
  for (std::size_t i = 0; const float value : x.values<float>())
    layer.weights.push_back(static_cast<std::uint8_t>(quantize(grids[i++ % grids.size()], value)));
  if (transposed) {
    layer.weights = integer::transpose(layer.weights, x.shape()[0]);
    layer.filter = {x.shape()[1], x.shape()[0]};
  }
  const std::int64_t channels = layer.output_channels();
  const auto ranges = static_cast<std::int64_t>(grids.size());
  if (ranges > 1 && (transposed || channels % ranges != 0))
    fail(describe(quantizer), " has ", ranges, " ranges over weights ", x.shape(),
         transposed ? ", taken transposed" : "", ": not one for each of ", channels, " output channels");
  for (std::int64_t o = 0; o < (ranges > 1 ? channels : 1); ++o) {
    layer.weight_scales.push_back(grids[o % ranges].scale);
    layer.weight_zero_points.push_back(static_cast<std::int32_t>(grids[o % ranges].zero_point));
  }
}

void finish_layer(Layer& layer, std::span<const double> bias, float input_scale, float output_scale,
                  bool input_is_zero) {
  std::vector<double> sums = largest_sums(layer);
  if (input_is_zero) std::ranges::fill(sums, 0);
  std::vector<double> reachable(bias.begin(), bias.end());
  for (std::int64_t o = 0; o < layer.output_channels(); ++o) {
    const double most = sums[o] * input_scale * layer.unit_scale(o) + kStepsBeyondGrid * output_scale;
    reachable[o] = std::clamp(reachable[o], -most, most);
  }
  for (std::size_t i = 0; i < layer.weight_scales.size(); ++i) fit_scale(layer, i, reachable, sums, input_scale);
  for (std::int64_t o = 0; o < layer.output_channels(); ++o) {
    const double units = std::round(reachable[o] / (double{input_scale} * layer.unit_scale(o)));
    layer.bias.push_back(static_cast<std::int32_t>(std::clamp<double>(units, -INT32_MAX, INT32_MAX)));
  }
  for (const float scale : layer.unit_scales())
    layer.multipliers.push_back(integer::multiplier_for(multiplier_in_range(input_scale * scale / output_scale)));
}

double multiplier_in_range(double real) { return std::min(real, kLargestMultiplier); }

}  // namespace miniqat::quantize
