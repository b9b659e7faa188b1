// The example in docs/integer-arithmetic.md, computed; and that the page says what comes out.

#include <gtest/gtest.h>

#include <cmath>

#include "core/files/files.h"
#include "core/tensors/tensor.h"
#include "integer/reference/engine.h"
#include "quantize/affine.h"

namespace miniqat::integer::worked_example_test {
namespace {

struct Example {
  Grid x{.scale = 1.0f / 255, .zero_point = 0};
  Grid y{.scale = 1.0f / 128, .zero_point = 0};
  quantize::Affine<float> w = quantize::grid_of<float>({-0.2f, 0.3f}, {.bits = 8, .narrow_range = true});
  double product_scale = double{x.scale} * w.scale;
  Multiplier multiplier = multiplier_for(x.scale * w.scale / y.scale);

  Model model() const {
    Layer layer{.kind = LayerKind::kFullyConnected,
                .filter = {2, 1},
                .weights = {static_cast<std::uint8_t>(quantize::quantize(w, 0.3f)),
                            static_cast<std::uint8_t>(quantize::quantize(w, -0.2f))},
                .weight_scales = {w.scale},
                .weight_zero_points = {static_cast<std::int32_t>(w.zero_point)},
                .bias = {static_cast<std::int32_t>(std::round(0.1 / product_scale))},
                .multipliers = {multiplier}};
    Model model{.name = "worked example",
                .tensors = {{.name = "x", .shape = {2}, .grid = x}, {.name = "y", .shape = {1}, .grid = y}},
                .output = 1};
    model.operations.push_back({.name = "layer", .action = layer, .inputs = {0}, .output = 1, .clamp = {0, 255}});
    model.check();
    return model;
  }
};

TEST(WorkedExample, GivesTheNumbersOfThePage) {
  const Example example;
  const Model model = example.model();
  const auto& layer = std::get<Layer>(model.operations[0].action);
  const std::vector<std::uint8_t> x = {quantize(example.x, 0.6f), quantize(example.x, 0.75f)};
  EXPECT_EQ(x, (std::vector<std::uint8_t>{153, 191}));
  EXPECT_NEAR(example.w.scale, 0.0019685039, 5e-11);
  EXPECT_EQ(example.w.zero_point, 103);
  EXPECT_NEAR(example.w.nudged_min, -0.2007874, 5e-8);
  EXPECT_NEAR(example.w.nudged_max, 0.2992126, 5e-8);
  EXPECT_EQ(layer.weights, (std::vector<std::uint8_t>{255, 1}));
  EXPECT_NEAR(example.product_scale, 7.719624e-06, 5e-13);
  EXPECT_NEAR(0.1 / example.product_scale, 12953.999, 5e-4);
  EXPECT_EQ(layer.bias[0], 12954);
  EXPECT_EQ(example.multiplier, (Multiplier{.mantissa = 1086440448, .shift = 40}));
  const std::int32_t sum = layer.bias[0] + 153 * (255 - 103) + 191 * (1 - 103);
  EXPECT_EQ(sum, 16728);
  EXPECT_NEAR(sum * example.multiplier.real(), 16.529, 5e-4);
  EXPECT_NEAR(sum * example.product_scale, 0.1291, 5e-5);
  const Tensor images = Tensor::from({1, 2}, x);
  EXPECT_EQ(reference::run(model, images)[1].values<std::uint8_t>()[0], 17);
}

TEST(WorkedExample, ThePageSaysSo) {
  const std::string page = read_file(std::string(MINIQAT_SOURCE_DIR) + "/docs/integer-arithmetic.md");
  for (const char* text :
       {"q_x = (153, 191)", "S_w = 0.5 / 254 = 0.0019685039", "rounded: 103", "-0.2007874", "0.2992126",
        "q_w = (255, 1)", "7.719624e-06", "q_b = 12954 (12953.999)", "= 12954 + 23256 - 19482 = 16728",
        "m = 1086440448,    s = 40", "floor(16.529 + 0.5) = 17", "16728 S_x S_w = 0.1291"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace miniqat::integer::worked_example_test
