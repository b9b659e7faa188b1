#include "quantize/convert/integer_line.h"

#include <algorithm>
#include <cmath>

#include "core/text/error.h"
#include "layers/elementwise.h"

namespace miniqat::quantize {
namespace {

constexpr int kBits = 8;
constexpr std::uint8_t kZeroPoint = 128;
/// The largest weight that TensorFlow Lite has, so that biases, counted in its scale, are fine.
constexpr int kLargest = 127;

struct Point {
  double factor, offset;
};

Point line_through(const Node& node, int x, double constant) {
  if (node.as<layers::Mul>()) return {constant, 0};
  if (node.as<layers::Div>()) return {1 / constant, 0};
  if (node.as<layers::Sub>()) return x == 0 ? Point{1, -constant} : Point{-1, constant};
  return {1, constant};
}

}  // namespace

Line line_of(const Node& node, int x, const Tensor& constant) {
  const Output summand = node.input(x), other = node.input(1 - x);
  const std::int64_t channels = summand.shape().rank() > 0 ? summand.shape().channels() : 1;
  const bool fits =
      constant.elements() == 1 || (constant.elements() == channels && constant.shape().channels() == channels);
  if (!fits || node.output().shape() != summand.shape())
    fail(describe(node), " combines ", summand.name(), " ", summand.shape(), " with ", other.name(), " ",
         constant.shape(), ": an integer model takes one number, or one for each channel");
  Line line;
  for (const float number : constant.values<float>()) {
    const auto [factor, offset] = line_through(node, x, double{number});
    if (!std::isfinite(factor) || !std::isfinite(offset)) fail(describe(node), " divides by ", number);
    line.factors.push_back(factor);
    line.offsets.push_back(offset);
  }
  return line;
}

Line both_lines(const Line& first, const Line& second) {
  Line line;
  for (std::size_t c = 0; c < std::max(first.factors.size(), second.factors.size()); ++c) {
    const std::size_t a = first.by_channel() ? c : 0, b = second.by_channel() ? c : 0;
    line.factors.push_back(second.factors[b] * first.factors[a]);
    line.offsets.push_back(second.factors[b] * first.offsets[a] + second.offsets[b]);
  }
  return line;
}

std::vector<double> line_values(const Line& line, const integer::Grid& input) {
  std::vector<double> values;
  for (std::int32_t q = 0; q <= input.quant_max(); ++q)
    values.push_back(line.factors[0] * double{integer::dequantize(input, q)} + line.offsets[0]);
  return values;
}

integer::Layer line_layer(const Line& line, const Shape& images) {
  const auto channels = static_cast<std::int64_t>(line.factors.size());
  integer::Layer layer = {.kind = integer::LayerKind::kDepthwiseConv2d,
                          .window = {.rows = {.input = images[0], .output = images[0]},
                                     .columns = {.input = images[1], .output = images[1]}},
                          .filter = {1, 1, channels, 1},
                          .weight_bits = kBits};
  const bool shares = std::ranges::all_of(line.factors, [&](double factor) { return factor == line.factors[0]; });
  for (std::size_t c = 0; c < line.factors.size(); ++c) {
    const double factor = line.factors[c];
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

}  // namespace miniqat::quantize
