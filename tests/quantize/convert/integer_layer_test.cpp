// Weights and biases as integers: the ordinary case, and the scales that leave a bias no room.

#include "quantize/convert/integer_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "integer/reference/engine.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize::integer_layer_test {
namespace {

using integer::Layer;
using integer::Model;

constexpr float kInputScale = 0.05f;

/// A matrix product of the given weights [in, out], a scale for each channel or one for all.
struct Case {
  std::vector<std::uint8_t> weights;
  std::vector<float> scales;
  std::vector<double> bias;
  float output_scale = 0.02f;
  bool input_is_zero = false;
};

constexpr std::int32_t kZero = 128;

Model model_of(const Case& c) {
  const auto channels = static_cast<std::int64_t>(c.bias.size());
  Layer layer = {.kind = integer::LayerKind::kFullyConnected};
  layer.filter = {static_cast<std::int64_t>(c.weights.size()) / channels, channels};
  layer.weights = c.weights;
  layer.weight_scales = c.scales;
  layer.weight_zero_points.assign(c.scales.size(), kZero);
  const integer::Grid x = {.scale = kInputScale}, y = {.scale = c.output_scale, .zero_point = 100};
  EXPECT_TRUE(finish_layer(layer, c.bias, x, y, c.input_is_zero).scale_shift.empty());
  Model model = {.name = "layer"};
  model.tensors = {{"x", {layer.filter[0]}, x}, {"y", {channels}, y}};
  model.operations = {{.name = "layer", .action = layer, .inputs = {0}, .output = 1}};
  model.output = 1;
  return model;
}

/// Expects the model to make of some inputs what real arithmetic with the original weights and biases makes.
void expect_real(const Case& c) {
  const Model model = model_of(c);
  ASSERT_NO_THROW(model.check());
  const std::size_t channels = c.bias.size(), inputs = c.weights.size() / channels;
  for (const int x : c.input_is_zero ? std::vector{0} : std::vector{0, 1, 77, 255}) {
    Tensor images(Shape{1, static_cast<std::int64_t>(inputs)}, DType::kUInt8);
    for (std::uint8_t& value : images.values<std::uint8_t>()) value = static_cast<std::uint8_t>(x);
    const Tensor found = integer::reference::run(model, images)[1];
    for (std::size_t o = 0; o < channels; ++o) {
      double y = c.bias[o];
      for (std::size_t i = 0; i < inputs; ++i)
        y += (c.weights[i * channels + o] - kZero) * double{c.scales[c.scales.size() > 1 ? o : 0]} * x * kInputScale;
      const double expected = std::clamp(y / c.output_scale + 100, 0.0, 255.0);
      EXPECT_NEAR(found.data<std::uint8_t>()[o], expected, 0.51) << "channel " << o << ", input " << x;
    }
  }
}

TEST(IntegerLayer, OrdinaryScalesStay) {
  const Case c = {{130, 90, 200, 17, 128, 128}, {0.001f}, {0.5, -1.25}};
  const Model model = model_of(c);
  const auto& layer = std::get<Layer>(model.operations[0].action);
  EXPECT_EQ(layer.weights, c.weights);
  EXPECT_EQ(layer.weight_scales, c.scales);
  EXPECT_EQ(layer.bias, (std::vector<std::int32_t>{10000, -25000}));
  expect_real(c);
}

TEST(IntegerLayer, AChannelOfZerosKeepsItsBias) {
  expect_real({{128, 90, 128, 17}, {1, 0.001f}, {0.513, -1.25}});
  expect_real({{128, 128, 128, 128}, {1}, {0.513, -0.2}});
  expect_real({{128, 128}, {1}, {0}});
  expect_real({{128, 128}, {1}, {1e-30}});
  expect_real({{128, 128}, {1}, {-1e30}});
}

TEST(IntegerLayer, AChannelAllButSwitchedOffKeepsItsBias) {
  for (const float scale : {1e-8f, 1e-12f, 1e-30f, 2e-38f}) {
    expect_real({{1, 90, 255, 17}, {scale, 0.001f}, {0.9, -1.25}});
    expect_real({{1, 255, 130, 17}, {scale}, {0.9, -1.25}});
  }
}

TEST(IntegerLayer, AnInputOfZerosKeepsBiases) {
  // At these scales of weights a bias would be rounded to a whole number of output steps, and more.
  for (const float scale : {1e-3f, 1.0f, 50.0f, 1e20f})
    for (const double bias : {0.513, -0.2, 1e-30, 1e30}) {
      const Case one = {.weights = {1, 90, 255, 17}, .scales = {scale}, .bias = {bias, -0.31}, .input_is_zero = true};
      expect_real(one);
      const Case each = {.weights = {1, 90, 255, 17}, .scales = {scale, 1}, .bias = {bias, 0}, .input_is_zero = true};
      expect_real(each);
      EXPECT_EQ(std::get<Layer>(model_of(one).operations[0].action).weights, one.weights);
    }
}

TEST(IntegerLayer, BiasesBeyondTheGridSaturate) {
  for (const double bias : {1e6, -1e6, 1e12, -1e12, 1e300})
    for (const float scale : {0.001f, 1e-9f}) expect_real({{1, 90, 255, 17}, {scale}, {bias, 0.1}});
}

}  // namespace
}  // namespace miniqat::quantize::integer_layer_test
