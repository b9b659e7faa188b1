// The integer engine's reference loops against exact real arithmetic: what they compute is what the header says.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/files/files.h"
#include "core/tensors/eigen.h"
#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "integer/reference/engine.h"
#include "quantize/affine.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"
#include "tests/source_dir.h"

namespace miniqat::integer::reference_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::random_images;
using testing::RandomModel;

double real_of(const Grid& grid, std::uint8_t q) { return double{grid.scale} * (q - grid.zero_point); }

/// Rounded half up and clamped, as training rounds.
std::int64_t on_grid(const Grid& grid, const Clamp& clamp, double real) {
  const auto q = static_cast<std::int64_t>(std::floor(real / grid.scale + 0.5)) + grid.zero_point;
  return std::clamp<std::int64_t>(q, clamp.min, clamp.max);
}

/// The real numbers that a layer should make of dequantized inputs, weights and biases.
std::vector<double> real_layer(const Model& model, const Operation& operation, const Tensor& images) {
  const auto& layer = std::get<Layer>(operation.action);
  const TensorInfo& x = model.input_of(operation);
  const std::int64_t n = images.shape()[0], out = layer.output_channels(), in = x.shape.channels();
  std::vector<double> y(n * model.output_of(operation).shape.elements());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = layer.bias[i % out] * double{x.grid.scale} * layer.weight_scale(static_cast<std::int64_t>(i) % out) /
           (1 << std::max(0, 7 - layer.weight_bits));
  for_each_tap(n, layer.window, [&](const Tap& tap) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o) {
        const bool depthwise = layer.kind == LayerKind::kDepthwiseConv2d;
        if (depthwise && o / layer.filter[3] != i) continue;
        const std::int64_t place = depthwise ? tap.window * out + o : (tap.window * in + i) * out + o;
        const double weight = double{layer.weight_scale(o)} * (layer.weights[place] - layer.weight_zero_point(o));
        y[tap.output * out + o] += weight * real_of(x.grid, images.values<std::uint8_t>()[tap.input * in + i]);
      }
  });
  return y;
}

TEST(IntegerReference, LayersAreTheirRealCounterpartsRounded) {
  std::int64_t different = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomModel net(seed, {7, 6, 5});
    if (seed % 3 == 0) net.conv2d(9);
    if (seed % 3 == 1) net.depthwise_conv2d(1 + seed % 2);
    if (seed % 3 == 2) net.fully_connected(9);
    const Model model = net.finish();
    const Tensor images = random_images(net.random(), model, 3);
    const std::vector<Tensor> tensors = reference::run(model, images);
    const Operation& operation = model.operations.back();
    const Tensor& x = tensors[operation.inputs[0]];
    const std::vector<double> real = real_layer(model, operation, x);
    const std::span<const std::uint8_t> y = tensors[model.output].values<std::uint8_t>();
    for (std::size_t i = 0; i < real.size(); ++i) {
      const std::int64_t expected = on_grid(model.tensor(model.output).grid, operation.clamp, real[i]);
      ASSERT_LE(std::abs(y[i] - expected), 1) << "seed " << seed << " at " << i;
      different += y[i] != expected ? 1 : 0;
      ++all;
    }
  }
  // Only what lies within 2^-31 of a tie may come out differently.
  EXPECT_LT(static_cast<double>(different), 1e-4 * static_cast<double>(all));
}

/// docs/integer-arithmetic.md in int32: bias + (x - Z_x) (w - Z_w), requantized.
TEST(IntegerReference, AFullyConnectedLayerIsAMatrixProductRounded) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomModel net(seed, {7});
    net.fully_connected(9);
    const Model model = net.finish();
    const Operation& operation = model.operations.back();
    const auto& layer = std::get<Layer>(operation.action);
    const Grid x_grid = model.input_of(operation).grid, y_grid = model.output_of(operation).grid;
    const Tensor images = random_images(net.random(), model, 3);
    const std::vector<Tensor> found = reference::run(model, images);
    const auto int32 = [](const auto& bytes) -> Eigen::ArrayXXi { return bytes.template cast<std::int32_t>(); };
    const Eigen::ArrayXXi x = int32(matrix_of<std::uint8_t>(found[operation.inputs[0]])) - x_grid.zero_point;
    Eigen::ArrayXXi w = int32(matrix_of(std::span<const std::uint8_t>(layer.weights), 9));
    for (int o = 0; o < 9; ++o) w.col(o) -= layer.weight_zero_point(o);
    const Eigen::MatrixXi products = x.matrix().lazyProduct(w.matrix()) * (1 << layer.weight_shift());
    for (int i = 0; i < 3; ++i)
      for (int o = 0; o < 9; ++o)
        EXPECT_EQ(found[model.output].values<std::uint8_t>()[9 * i + o],
                  requantize(layer.bias[o] + products(i, o), layer.multiplier(o), y_grid.zero_point, operation.clamp))
            << "seed " << seed;
  }
}

TEST(IntegerReference, SumsProductsAndMeansAreRoundedOnce) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomModel net(seed, {4, 5, 3});
    const int a = net.rescale();
    const int b = net.rescale();
    const int sum = net.add(a, b), product = net.mul(a, b), mean = (net.concat(a, b), net.mean());
    const Model model = net.finish();
    const std::vector<Tensor> tensors = reference::run(model, random_images(net.random(), model, 2));
    const auto value = [&](int t, std::int64_t i) {
      return real_of(model.tensor(t).grid, tensors[t].values<std::uint8_t>()[i]);
    };
    const auto expect = [&](int t, std::int64_t i, double real) {
      const Clamp& clamp = model.operations[t - 1].clamp;
      EXPECT_LE(std::abs(tensors[t].values<std::uint8_t>()[i] - on_grid(model.tensor(t).grid, clamp, real)), 1);
      // Further than rounding explains, if at all, only at a tie.
      const double place = real / model.tensor(t).grid.scale;
      if (std::abs(place - std::floor(place) - 0.5) > 1e-6) {
        EXPECT_EQ(tensors[t].values<std::uint8_t>()[i], on_grid(model.tensor(t).grid, clamp, real)) << "seed " << seed;
      }
    };
    for (std::int64_t i = 0; i < tensors[a].elements(); ++i) {
      expect(sum, i, value(a, i) + value(b, i));
      expect(product, i, value(a, i) * value(b, i));
    }
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < 6; ++c) {
        double total = 0;
        for (std::int64_t p = 0; p < 20; ++p) total += value(mean - 1, (n * 20 + p) * 6 + c);
        expect(mean, n * 6 + c, total / 20);
      }
  }
}

TEST(IntegerReference, RefusesWrongImages) {
  const Model model = testing::random_network(1);
  const auto run = [&](const Tensor& images) { return error_of([&] { reference::run(model, images); }); };
  EXPECT_TRUE(mentions(run(Tensor({2, 9, 11, 4}, DType::kUInt8)), {"\"input\"", "[9,11,3]", "[2,9,11,4]"}));
  EXPECT_TRUE(mentions(run(Tensor({2, 9, 11, 3})), {"float32"}));
  EXPECT_TRUE(mentions(run(Tensor({0, 9, 11, 3}, DType::kUInt8)), {"[0,9,11,3]"}));
}

TEST(IntegerArithmetic, MultipliersHoldThirtyOneBits) {
  EXPECT_EQ(multiplier_for(1), (Multiplier{.mantissa = 1 << 30, .shift = 30}));
  EXPECT_EQ(multiplier_for(0.75), (Multiplier{.mantissa = 3 << 29, .shift = 31}));
  EXPECT_EQ(multiplier_for(0).mantissa, 0);
  EXPECT_EQ(multiplier_for(std::ldexp(0.9, -32)).mantissa, 0);
  EXPECT_EQ(multiplier_for(std::ldexp(1, -32)), (Multiplier{.mantissa = 1 << 30, .shift = 62}));
  EXPECT_EQ(multiplier_for(std::nextafter(1.0, 0.0)), multiplier_for(1));
  for (double real = 1e-9; real < 1e9; real *= 1.37)
    EXPECT_NEAR(multiplier_for(real).real(), real, std::ldexp(real, -31)) << real;
  for (const double bad : {-1.0, std::ldexp(1, 30), std::nan(""), HUGE_VAL})
    EXPECT_TRUE(mentions(error_of([&] { multiplier_for(bad); }), {"multiplier must be in [0, 2^30)"})) << bad;
}

TEST(IntegerArithmetic, SharedMultipliersHoldTwentyOneBits) {
  const auto of = [](double a, double b) { return shared_multipliers_for(std::array{a, b}); };
  EXPECT_EQ(of(1, 0.75), (SharedMultipliers{.mantissas = {1 << 20, 3 << 18}, .shift = 20}));
  EXPECT_EQ(of(0.75, 1e-9), (SharedMultipliers{.mantissas = {3 << 19, 0}, .shift = 21}));
  EXPECT_EQ(of(0, 0).mantissas, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(of(0, std::ldexp(1, -20)), (SharedMultipliers{.mantissas = {0, 1 << 11}, .shift = 31}));
  EXPECT_EQ(of(std::nextafter(1.0, 0.0), 0), (SharedMultipliers{.mantissas = {1 << 21, 0}, .shift = 21}));
  EXPECT_EQ(of(1 + std::ldexp(1.5, -20), 1 + std::ldexp(2.5, -20)).mantissas,
            (std::vector<std::int32_t>{(1 << 20) + 2, (1 << 20) + 2}));
  EXPECT_EQ(of(std::ldexp(1, 20) - 1, 1).shift, 1);
  for (const double bad : {-1.0, std::ldexp(1, 20), std::nan(""), HUGE_VAL})
    EXPECT_TRUE(mentions(error_of([&] { of(1, bad); }), {"shared multiplier must be in [0, 2^20)"})) << bad;
}

TEST(IntegerArithmetic, RoundsTiesUpwards) {
  const Multiplier half = multiplier_for(0.5);
  const Clamp wide{.min = 0, .max = 255};
  const std::int32_t sums[] = {-3, -2, -1, 0, 1, 2, 3};
  const int expected[] = {99, 99, 100, 100, 101, 101, 102};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(requantize(sums[i], half, 100, wide), expected[i]) << sums[i];
  EXPECT_EQ(requantize(INT32_MAX, multiplier_for(std::ldexp(1, 29)), 0, wide), 255);
  EXPECT_EQ(requantize(INT32_MIN, multiplier_for(std::ldexp(1, 29)), 0, wide), 0);
}

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
  const std::string page = read_file(source_dir() / "docs/integer-arithmetic.md");
  for (const char* text :
       {"q_x = (153, 191)", "S_w = 0.5 / 254 = 0.0019685039", "rounded: 103", "-0.2007874", "0.2992126",
        "q_w = (255, 1)", "7.719624e-06", "q_b = 12954 (12953.999)", "= 12954 + 23256 - 19482 = 16728",
        "m = 1086440448,    s = 40", "floor(16.529 + 0.5) = 17", "16728 S_x S_w = 0.1291"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

}  // namespace

}  // namespace miniqat::integer::reference_test
