// Ranges so small that the product of two scales is no float32 number.

#include <gtest/gtest.h>

#include "quantize/convert/integer_layer.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::tiny_ranges_test {
namespace {

using testing::EvalNet;

constexpr float kTiny = 1e-35f;

TEST(TinyRanges, ALayerKeepsItsMultiplier) {
  EvalNet net;
  net.input = {.scale = kTiny, .zero_point = 0, .bits = 8};
  const Output weights = net.weights("a", {3, 3, 3, 4});
  const Output y = layers::conv2d(net.graph, "a/Conv2D", net.images(), weights);
  const integer::Model model = net.convert(net.quantizer("q", y, {-2000 * kTiny, 2000 * kTiny}));
  const auto& layer = std::get<integer::Layer>(model.operations[0].action);
  const double output = model.tensor(model.output).grid.scale;
  EXPECT_NEAR(layer.multiplier(0).real(), double{kTiny} * layer.weight_scale(0) / output, 1e-6);
  EXPECT_GT(layer.multiplier(0).mantissa, 0);
}

TEST(TinyRanges, AProductKeepsItsMultiplier) {
  EvalNet net;
  net.input = {.scale = 1e-20f, .zero_point = 0, .bits = 8};
  const Output x = net.images();
  const integer::Model model = net.convert(net.quantizer("q", layers::mul(net.graph, "Mul", x, x), {0, 6.5e-36f}));
  EXPECT_NEAR(std::get<integer::Mul>(model.operations[0].action).multiplier.real(),
              1e-40 / double{model.tensor(model.output).grid.scale}, 1e-6);
}

/// As runtimes compute it.
TEST(TinyRanges, OtherRatiosAreThoseOfFloat32) {
  const float a = 1.0f / 255, b = 0.3f / 127, output = 6.0f / 255;
  EXPECT_EQ(scale_ratio(a, b, output), double{a * b / output});
  EXPECT_NEAR(scale_ratio(1e30f, 1e30f, 1e35f), 1e25, 1e19);
}

}  // namespace
}  // namespace miniqat::quantize::tiny_ranges_test
