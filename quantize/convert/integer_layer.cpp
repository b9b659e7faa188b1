#include "quantize/convert/integer_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "core/text/error.h"
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
/// In steps of the output: how far the rounding of a bias may move a result.
constexpr double kBiasError = 0.25;
/// The steps from end to end of a grid of 8 bits.
constexpr double kSteps = 255;
/// A unit of so many steps takes all results beyond the grid but those of one sum, as one of more does.
constexpr double kLargestUnit = 2048;

/// The real number of 1 in a channel's sum.
double unit_of(const Layer& layer, std::int64_t channel, float input_scale) {
  return double{input_scale} * layer.unit_scale(channel);
}

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
  const double unit = unit_of(layer, static_cast<std::int64_t>(group), input_scale);
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

void fit_scales(Layer& layer, std::span<const double> bias, std::span<const double> sums, float input_scale) {
  for (std::size_t i = 0; i < layer.weight_scales.size(); ++i) fit_scale(layer, i, bias, sums, input_scale);
}

/// In steps of the output: the largest distance of a bias from whole units.
double bias_error(const Layer& layer, std::span<const double> bias, float input_scale, float output_scale) {
  double largest = 0;
  for (std::int64_t o = 0; o < layer.output_channels(); ++o) {
    const double unit = unit_of(layer, o, input_scale);
    largest = std::max(largest, std::abs(bias[o] - std::round(bias[o] / unit) * unit) / output_scale);
  }
  return largest;
}

std::int32_t in_32_bits(double units) {
  return static_cast<std::int32_t>(std::clamp<double>(units, -INT32_MAX, INT32_MAX));
}

/// A channel's sums and bias on the way through units_grid(): n units become n * `steps` of its steps, and from there
/// y = factor * steps * n + rest steps of the output.
struct Channel {
  double steps, factor;
  double whole;
  double rest;
};

/// A unit is `unit` steps of the output, the bias `bias` steps. Sums of many units leave units_grid(), whose ends lie
/// `below` and `above` its zero point, and are clamped there. The results must be beyond the output's ends as well:
///
///     factor * above + rest >= above,    -factor * below + rest <= -below
///
/// The bias may be divided into units and rest in any way, so that the rest may be any within a range of one unit. Both
/// hold if (factor - 1) (below + above) >= unit, that is steps <= 255 unit / (255 + unit).
std::optional<Channel> in_units(double unit, double bias, double below, double above) {
  double whole = std::round(bias / unit), rest = bias - whole * unit;
  if (unit > kLargestUnit) {
    unit = kLargestUnit;
    rest = std::clamp(rest, -kStepsBeyondGrid, kStepsBeyondGrid);
  }
  const double steps = std::floor(kSteps * unit / (kSteps + unit));
  if (steps < 1) return std::nullopt;
  const double factor = unit / steps, least = -(factor - 1) * above, most = (factor - 1) * below;
  double moved = 0;
  if (rest > most) moved = std::ceil((rest - most) / unit);
  if (rest < least) moved = -std::ceil((least - rest) / unit);
  return Channel{.steps = steps, .factor = factor, .whole = whole + moved, .rest = rest - moved * unit};
}

/// Gives the layer the whole units of its biases; the result has the rest. Channels of fine units keep all of theirs.
ScaleShift split_biases(Layer& layer, std::span<const double> bias, float input_scale, const integer::Grid& output) {
  const double below = output.zero_point, above = kSteps - below;
  ScaleShift scale_shift;
  std::vector<float> scales = layer.weight_scales;
  bool splits = false;
  for (std::int64_t o = 0; o < layer.output_channels(); ++o) {
    const double unit = unit_of(layer, o, input_scale);
    const std::optional<Channel> channel = in_units(unit / output.scale, bias[o] / output.scale, below, above);
    splits = splits || channel;
    layer.bias.push_back(in_32_bits(channel ? channel->whole : std::round(bias[o] / unit)));
    scale_shift.factors.push_back(channel ? channel->factor : 1);
    scale_shift.offsets.push_back(channel ? channel->rest * output.scale : 0);
    if (channel)
      scales[layer.per_channel() ? static_cast<std::size_t>(o) : 0] = static_cast<float>(
          std::ldexp(channel->steps * double{output.scale} / double{input_scale}, layer.weight_shift()));
  }
  layer.weight_scales = scales;
  return splits ? scale_shift : ScaleShift{};
}

/// [before, after] of a spatial axis; left out for none.
std::array<std::int64_t, 2> border(const std::vector<std::array<std::int64_t, 2>>& borders, std::size_t axis) {
  return borders.empty() ? std::array<std::int64_t, 2>{0, 0} : borders[axis];
}

/// Pixel v of block offset b is pixel v * block + b - top of the image, so a tap further in the block is `block`
/// pixels further in the image.
WindowAxis dilated_axis(const WindowAxis& inner, std::int64_t extent, std::int64_t block, std::int64_t top,
                        const std::array<std::int64_t, 2>& crop) {
  if (inner.stride != 1) fail("a convolution with strides between SpaceToBatchND and BatchToSpaceND is not dilated");
  WindowAxis axis = {.input = extent, .window = inner.window, .stride = 1, .dilation = inner.dilation * block};
  axis.output = inner.output * block - crop[0] - crop[1];
  axis.pad_before = inner.pad_before * block + top - crop[0];
  if (axis.pad_before < 0) fail("BatchToSpaceND crops ", crop[0], " pixels, more than was padded before");
  axis.pad_after = std::max<std::int64_t>(axis.source(axis.output - 1, axis.window - 1) + 1 - extent, 0);
  return axis;
}

}  // namespace

integer::Grid units_grid(const integer::Grid& output) {
  return {.scale = output.scale, .zero_point = output.zero_point};
}

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
    fail(describe(quantizer), " has ", counted(ranges, "range"), " over weights ", x.shape(),
         transposed ? ", taken transposed" : "", ": not one for each of ", channels, " output channels");
  for (std::int64_t o = 0; o < (ranges > 1 ? channels : 1); ++o) {
    layer.weight_scales.push_back(grids[o % ranges].scale);
    layer.weight_zero_points.push_back(static_cast<std::int32_t>(grids[o % ranges].zero_point));
  }
}

BiasHelp finish_layer(Layer& layer, std::span<const double> bias, const integer::Grid& input,
                      const integer::Grid& output, bool input_is_zero) {
  std::vector<double> sums = largest_sums(layer);
  if (input_is_zero) std::ranges::fill(sums, 0);
  std::vector<double> reachable(bias.begin(), bias.end());
  for (std::int64_t o = 0; o < layer.output_channels(); ++o) {
    const double most = sums[o] * unit_of(layer, o, input.scale) + kStepsBeyondGrid * output.scale;
    reachable[o] = std::clamp(reachable[o], -most, most);
  }
  BiasHelp help;
  float input_scale = input.scale;
  fit_scales(layer, reachable, sums, input_scale);
  const auto error = [&] { return bias_error(layer, reachable, input_scale, output.scale); };
  if (error() > kBiasError && input.bits < 8 && !input_is_zero) {
    help.input_shift = 8 - input.bits;
    input_scale = std::ldexp(input_scale, -help.input_shift);
    fit_scales(layer, reachable, sums, input_scale);
  }
  if (error() > kBiasError) help.scale_shift = split_biases(layer, reachable, input_scale, output);
  if (layer.bias.empty())
    for (std::int64_t o = 0; o < layer.output_channels(); ++o)
      layer.bias.push_back(in_32_bits(std::round(reachable[o] / unit_of(layer, o, input_scale))));
  for (const float scale : layer.unit_scales())
    layer.multipliers.push_back(
        integer::multiplier_for(multiplier_in_range(scale_ratio(input_scale, scale, output.scale))));
  return help;
}

double scale_ratio(float a, float b, float output) {
  const float product = a * b;
  return std::isnormal(product) ? product / output : double{a} * b / output;
}

double multiplier_in_range(double real) { return std::min(real, kLargestMultiplier); }

Window2d dilated_window(const Atrous& atrous, const layers::BatchToSpaceAttributes& to_space) {
  const std::vector<std::int64_t>& blocks = atrous.to_batch.block_shape;
  if (blocks != to_space.block_shape) fail("BatchToSpaceND does not undo the SpaceToBatchND before it");
  const auto axis = [&](std::size_t i, const WindowAxis& inner) {
    return dilated_axis(inner, atrous.images[static_cast<int>(i) + 1], blocks[i],
                        border(atrous.to_batch.paddings, i)[0], border(to_space.crops, i));
  };
  return {.rows = axis(0, atrous.window.rows), .columns = axis(1, atrous.window.columns)};
}

}  // namespace miniqat::quantize
