// The fast integer engine against the reference loops: not one integer may differ, on any instruction set (CMakeLists
// runs this test on the lesser ones, too) and thread count.

#include "integer/engine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "integer/format/model_file.h"
#include "integer/kernels/convolution.h"
#include "integer/kernels/depthwise.h"
#include "integer/model.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"

namespace miniqat::integer::engine_test {
namespace {

using testing::random_images;
using testing::RandomModel;

/// "[Conv2D "a"] [2,3,3,8] at [1,2,0,7]: 13, should be 14", or "" where all is the same.
std::string difference(const Model& model, int tensor, const Tensor& actual, const Tensor& expected) {
  if (actual.spec() != expected.spec()) return concat("shape ", actual.shape(), ", should be ", expected.shape());
  const std::span<const std::uint8_t> y = actual.values<std::uint8_t>(), z = expected.values<std::uint8_t>();
  const auto [at, other] = std::ranges::mismatch(y, z);
  if (at == y.end()) return "";
  std::vector<std::int64_t> place(expected.shape().extents().size());
  std::int64_t rest = at - y.begin();
  for (std::size_t axis = place.size(); axis-- > 0;) {
    place[axis] = rest % expected.shape()[static_cast<int>(axis)];
    rest /= expected.shape()[static_cast<int>(axis)];
  }
  std::string what = concat("\"", model.tensor(tensor).name, "\"");
  for (const Operation& operation : model.operations)
    if (operation.output == tensor) what = concat("[", type_name(operation.action), " \"", operation.name, "\"]");
  return concat(what, " ", expected.shape(), " at ", Shape(place), ": ", int{*at}, ", should be ", int{*other});
}

void expect_same(const Model& model, const Tensor& images, const std::string& what) {
  const std::vector<Tensor> expected = reference::run(model, images);
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    Engine engine(model);
    const std::vector<Tensor> actual = engine.run_all(images);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_EQ(difference(model, static_cast<int>(i), actual[i], expected[i]), "") << what << ", threads " << threads;
    ASSERT_EQ(difference(model, model.output, engine.run(images), expected[model.output]), "")
        << what << ", run, threads " << threads;
  }
}

void expect_same(RandomModel& net, std::int64_t n, const std::string& what) {
  const Model model = net.finish();
  expect_same(model, random_images(net.random(), model, n), what);
}

/// An image of up to 12 x 12 and, now and then, many channels.
Shape random_image(Random& random) {
  const std::int64_t channels = random.below(3) == 0 ? 1 + random.below(70) : 1 + random.below(9);
  return {static_cast<std::int64_t>(1 + random.below(12)), static_cast<std::int64_t>(1 + random.below(12)), channels};
}

TEST(IntegerEngine, RandomConvolutions) {
  for (std::uint64_t seed = 0; seed < testing::fewer(300); ++seed) {
    Random random(seed);
    RandomModel net(seed, random_image(random), {.full_range_weights = seed % 2 == 0});
    net.conv2d(static_cast<std::int64_t>(1 + random.below(seed % 3 == 0 ? 70 : 20)));
    expect_same(net, 1 + static_cast<std::int64_t>(seed % 5), concat("seed ", seed));
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerEngine, RandomDepthwiseConvolutions) {
  for (std::uint64_t seed = 0; seed < testing::fewer(200); ++seed) {
    Random random(seed);
    RandomModel net(seed, random_image(random), {.full_range_weights = seed % 2 == 0});
    net.depthwise_conv2d(seed % 4 == 0 ? 3 : 1);
    expect_same(net, 1 + static_cast<std::int64_t>(seed % 5), concat("seed ", seed));
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerEngine, RandomFullyConnectedLayers) {
  for (std::uint64_t seed = 0; seed < testing::fewer(100); ++seed) {
    Random random(seed);
    RandomModel net(seed, {static_cast<std::int64_t>(1 + random.below(300))}, {.full_range_weights = seed % 2 == 0});
    net.fully_connected(static_cast<std::int64_t>(1 + random.below(150)));
    expect_same(net, 1 + static_cast<std::int64_t>(seed % 5), concat("seed ", seed));
    if (HasFatalFailure()) return;
  }
}

/// Every other operation, also on images large enough for several threads. Files keep it.
TEST(IntegerEngine, RandomOperations) {
  struct Kind {
    const char* name;
    void (*grow)(RandomModel&);
  };
  const Kind kinds[] = {{"Add", [](RandomModel& net) { net.add(0, net.rescale()); }},
                        {"Mul", [](RandomModel& net) { net.mul(0, net.rescale()); }},
                        {"stretched Mul", [](RandomModel& net) { net.gate(); }},
                        {"Concat", [](RandomModel& net) { net.concat(0, net.rescale()); }},
                        {"Lookup", [](RandomModel& net) { net.rescale(), net.lookup(); }},
                        {"MaxPool", [](RandomModel& net) { net.max_pool(); }},
                        {"AveragePool", [](RandomModel& net) { net.average_pool(); }},
                        {"Mean", [](RandomModel& net) { net.mean(); }},
                        {"Pad", [](RandomModel& net) { net.pad(); }},
                        {"Slice", [](RandomModel& net) { net.slice(); }}};
  for (const auto& [name, grow] : kinds)
    for (std::uint64_t seed = 0; seed < testing::fewer(70, 3); ++seed) {
      Random random(seed);
      Shape image = random_image(random);
      if (seed % 8 == 7) image = {image[0] + 60, image[1] + 60, image[2]};
      RandomModel net(seed, image);
      grow(net);
      expect_same(net, 1 + static_cast<std::int64_t>(seed % 5), concat(name, ", seed ", seed));
      if (HasFatalFailure()) return;
      const std::string bytes = to_bytes(net.finish());
      ASSERT_EQ(to_bytes(from_bytes(bytes, "bytes")), bytes) << name << ", seed " << seed;
    }
}

TEST(IntegerEngine, RandomNetworks) {
  for (std::uint64_t seed = 0; seed < testing::fewer(30); ++seed) {
    const Model model = testing::random_network(seed);
    Random random(seed);
    expect_same(model, random_images(random, model, 1 + static_cast<std::int64_t>(seed % 5)), concat("seed ", seed));
    RandomModel net(seed, random_image(random));
    for (int i = 0; i < 8; ++i) net.anything();
    expect_same(net, 2, concat("anything, seed ", seed));
    if (HasFatalFailure()) return;
  }
}

/// A model of one layer, its weights and inputs to be filled in.
Model one_layer(LayerKind kind, const Shape& image, const WindowAttributes& window, std::int64_t channels) {
  Layer layer{.kind = kind, .weight_scales = {0.01f}, .weight_zero_points = {128}, .multipliers = {}};
  Shape shape;
  if (kind == LayerKind::kFullyConnected) {
    layer.filter = {image[0], channels};
    shape = {channels};
  } else {
    layer.window = slide(batch_shape(1, image), window);
    layer.filter = {window.window[0], window.window[1], image[2], channels};
    shape = {layer.window.rows.output, layer.window.columns.output, layer.output_channels()};
  }
  layer.weights.resize(layer.filter.elements());
  layer.bias.resize(layer.output_channels());
  layer.multipliers = {multiplier_for(0.001)};
  Model model{.name = "one layer"};
  model.tensors = {{.name = "input", .shape = image, .grid = {.scale = 0.01f}},
                   {.name = "y", .shape = shape, .grid = {.scale = 0.1f, .zero_point = 100}}};
  model.operations = {{.name = "layer", .action = layer, .inputs = {0}, .output = 1}};
  model.output = 1;
  return model;
}

Tensor images_of(const Model& model, std::int64_t n, int value) {
  Tensor images(batch_shape(n, model.tensor(0).shape), DType::kUInt8);
  std::ranges::fill(images.values<std::uint8_t>(), static_cast<std::uint8_t>(value));
  return images;
}

TEST(IntegerEngine, ExtremeWeightsAndInputs) {
  testing::OneIn chosen(1);
  for (const LayerKind kind : {LayerKind::kConv2d, LayerKind::kDepthwiseConv2d, LayerKind::kFullyConnected})
    for (const int weight_zero_point : {0, 1, 127, 128, 129, 255})
      for (const int input_zero_point : {0, 128, 255})
        for (const int weight : {0, 255}) {
          if (!chosen()) continue;
          const bool flat = kind == LayerKind::kFullyConnected;
          Model model = one_layer(kind, flat ? Shape{70} : Shape{6, 5, 37}, {.window = {3, 3}},
                                  kind == LayerKind::kDepthwiseConv2d ? 1 : 67);
          auto& layer = std::get<Layer>(model.operations[0].action);
          std::ranges::fill(layer.weights, static_cast<std::uint8_t>(weight));
          layer.weights[layer.weights.size() / 2] = static_cast<std::uint8_t>(255 - weight);
          layer.weight_zero_points = {weight_zero_point};
          layer.multipliers = {multiplier_for(0.0001)};
          model.tensors[0].grid.zero_point = input_zero_point;
          for (const int value : {0, 255})
            expect_same(model, images_of(model, 3, value),
                        concat(kLayerKindNames[static_cast<int>(kind)], ", weights ", weight, " less ",
                               weight_zero_point, ", inputs ", value, " less ", input_zero_point));
          if (HasFatalFailure()) return;
        }
}

/// Up to 64 pairs of products fit into 16 bits, beyond not.
TEST(IntegerEngine, WeightsWhosePairsJustFitAndJustNot) {
  for (const int weight : {-66, -65, -64, 64, 65, 66}) {
    Model model = one_layer(LayerKind::kConv2d, {6, 5, 37}, {.window = {3, 3}}, 67);
    auto& layer = std::get<Layer>(model.operations[0].action);
    std::ranges::fill(layer.weights, static_cast<std::uint8_t>(128 + weight));
    layer.weight_zero_points = {128};
    layer.multipliers = {multiplier_for(0.00004)};
    model.tensors[0].grid.zero_point = 0;
    model.tensors[1].grid.zero_point = weight < 0 ? 255 : 0;
    expect_same(model, images_of(model, 3, 255), concat("weights of ", weight));
  }
}

TEST(IntegerEngine, SumsUpToTheLastOf32Bits) {
  // 33025 inputs of 255 times weights of 255: 2^31 - 1 less 32767.
  Model model = one_layer(LayerKind::kFullyConnected, {33025}, {}, 5);
  auto& layer = std::get<Layer>(model.operations[0].action);
  std::ranges::fill(layer.weights, std::uint8_t{255});
  layer.weight_zero_points = {0};
  layer.multipliers = {multiplier_for(std::ldexp(1, -24))};
  layer.bias = {0, 17'000, 20'000, -17'000, 22};
  model.tensors[1].grid.zero_point = 0;
  model.check();
  expect_same(model, images_of(model, 3, 255), "largest sums");
  model.tensors[0].grid.zero_point = 255;
  model.tensors[1].grid.zero_point = 200;
  expect_same(model, images_of(model, 3, 0), "smallest sums");
}

TEST(IntegerEngine, MultipliersOfEverySize) {
  for (int exponent = -34; exponent < 30; ++exponent) {
    Model model = one_layer(LayerKind::kConv2d, {5, 5, 19}, {.window = {1, 2}}, 23);
    Random random(static_cast<std::uint64_t>(exponent + 40));
    auto& layer = std::get<Layer>(model.operations[0].action);
    if (exponent % 2 == 0) model.tensors[1].grid.zero_point = 255;
    for (std::uint8_t& weight : layer.weights) weight = static_cast<std::uint8_t>(random.below(256));
    layer.weight_scales.assign(23, 0.01f);
    layer.weight_zero_points.assign(23, 128);
    layer.multipliers.clear();
    for (int o = 0; o < 23; ++o)
      layer.multipliers.push_back(multiplier_for(std::ldexp(random.uniform(0.5f, 1), std::min(exponent + o % 3, 30))));
    // A shift that the others do not have.
    layer.multipliers[3] = {.mantissa = 3 << 29, .shift = 1 + (exponent + 34) % 62};
    for (std::int32_t& bias : layer.bias) bias = static_cast<std::int32_t>(random.bits() >> 4) - (1 << 27);
    expect_same(model, random_images(random, model, 2), concat("2^", exponent));
    for (std::int32_t& bias : layer.bias) bias = static_cast<std::int32_t>(random.below(5)) - 2;
    std::ranges::fill(layer.weights, std::uint8_t{128});
    expect_same(model, random_images(random, model, 2), concat("small sums, 2^", exponent));
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerEngine, AddsWithShiftsOfEverySize) {
  constexpr std::int32_t kLargest = SharedMultipliers::kLargestMantissa;
  for (int shift = 1; shift <= SharedMultipliers::kLargestShift; ++shift)
    for (const std::int32_t mantissa : {0, 1, 1 << 20, kLargest}) {
      RandomModel net(static_cast<std::uint64_t>(shift), {3, 5, 7});
      const int a = net.rescale();
      net.add(a, net.rescale());
      Model model = net.finish();
      std::get<Add>(model.operations.back().action).multipliers = {.mantissas = {mantissa, kLargest}, .shift = shift};
      expect_same(model, random_images(net.random(), model, 2), concat("shift ", shift, ", mantissa ", mantissa));
      if (HasFatalFailure()) return;
    }
}

/// Steps by steps with pools that the engine fuses, images larger than a strip, and rows of several tiles.
TEST(IntegerEngine, LayersOfLenetsSize) {
  struct Case {
    Shape image;
    WindowAttributes window;
    std::int64_t channels;
  };
  const std::vector<Case> cases = {{{28, 28, 1}, {.window = {5, 5}}, 32},
                                   {{14, 14, 32}, {.window = {5, 5}}, 64},
                                   {{61, 47, 3}, {.window = {3, 3}, .strides = {2, 2}}, 40},
                                   {{33, 35, 16}, {.window = {1, 1}}, 130},
                                   {{15, 13, 24}, {.window = {3, 3}, .padding = Padding::kValid}, 17},
                                   {{9, 9, 5}, {.window = {3, 2}, .dilations = {2, 3}}, 48}};
  testing::OneIn chosen(1);
  for (const Case& c : cases)
    for (const int zero_point : {128, 131}) {
      if (!chosen()) continue;
      Model model = one_layer(LayerKind::kConv2d, c.image, c.window, c.channels);
      auto& layer = std::get<Layer>(model.operations[0].action);
      Random random(static_cast<std::uint64_t>(zero_point));
      for (std::uint8_t& weight : layer.weights) weight = static_cast<std::uint8_t>(1 + random.below(255));
      layer.weight_zero_points = {zero_point};
      layer.multipliers = {multiplier_for(0.5 / std::sqrt(double(layer.weights.size()) * 255))};
      model.tensors[0].grid.zero_point = 7;
      // With padding a pool of an odd image sees less than four pixels at its border: not to be fused.
      const Window2d pool =
          slide(batch_shape(1, model.tensors[1].shape),
                {.window = {2, 2}, .strides = {2, 2}, .padding = zero_point == 128 ? Padding::kValid : Padding::kSame});
      model.tensors.push_back({.name = "pooled",
                               .shape = {pool.rows.output, pool.columns.output, c.channels},
                               .grid = model.tensors[1].grid});
      model.operations.push_back({.name = "pool", .action = MaxPool{pool}, .inputs = {1}, .output = 2});
      model.output = 2;
      model.check();
      expect_same(model, random_images(random, model, 3), concat("image ", c.image, ", zero point ", zero_point));
      if (HasFatalFailure()) return;
    }
}

TEST(IntegerEngine, KernelsThatThisMachineWouldNotTake) {
  for (std::uint64_t seed = 0; seed < testing::fewer(60); ++seed) {
    Random random(seed);
    RandomModel net(seed, random_image(random));
    const bool depthwise = seed % 2 == 0;
    if (depthwise)
      net.depthwise_conv2d();
    else
      net.conv2d(static_cast<std::int64_t>(1 + random.below(70)));
    const Model model = net.finish();
    const Tensor images = random_images(random, model, 2);
    const Tensor expected = reference::run(model, images)[1];
    const Operation& operation = model.operations[0];
    const auto& layer = std::get<Layer>(operation.action);
    const auto expect_step = [&](const auto& step, std::string_view name) {
      Tensor actual(expected.spec());
      const auto* x = images.data<std::uint8_t>();
      step.run(2, std::span(&x, 1), actual.data<std::uint8_t>());
      EXPECT_EQ(difference(model, 1, actual, expected), "") << name << ", seed " << seed;
    };
    if (depthwise) {
      for (const DepthwiseKernel& kernel : depthwise_kernels())
        expect_step(Depthwise(layer, model.tensor(0), model.tensor(1), operation.clamp, kernel), kernel.name);
    } else {
      for (const ProductKernel& kernel : product_kernels())
        expect_step(Convolution(layer, model.tensor(0), model.tensor(1), operation.clamp, nullptr, kernel),
                    kernel.name);
    }
    if (HasFailure()) return;
  }
}

TEST(IntegerEngine, TakesBatchesOfAnySizeInAnyOrder) {
  const Model model = testing::random_network(3);
  Engine engine(model);
  Random random(5);
  for (const std::int64_t n : {3, 1, 70, 2, 70, 5}) {
    const Tensor images = random_images(random, model, n);
    EXPECT_EQ(difference(model, model.output, engine.run(images), reference::run(model, images)[model.output]), "")
        << n;
  }
}

TEST(IntegerEngine, WindowsOverVastPaddingAreLeftToTheReferenceLoops) {
  Model model = one_layer(LayerKind::kConv2d, {3, 3, 16}, {}, 4);
  auto& layer = std::get<Layer>(model.operations[0].action);
  for (WindowAxis* axis : {&layer.window.rows, &layer.window.columns})
    *axis = {.input = 3, .window = 2, .stride = 60000, .output = 2, .pad_before = 1, .pad_after = 60000};
  layer.filter = {2, 2, 16, 4};
  layer.weights.assign(256, 77);
  model.tensors[1].shape = {2, 2, 4};
  model.check();
  expect_same(model, images_of(model, 2, 50), "vast padding");
}

TEST(IntegerEngine, AModelMayBeNothingButAReshape) {
  Model model{.name = "reshape"};
  model.tensors = {{.name = "input", .shape = {2, 3, 4}, .grid = {}}};
  expect_same(model, images_of(model, 2, 9), "no operation");
  model.tensors.push_back({.name = "flat", .shape = {24}, .grid = {}});
  model.operations = {{.name = "flatten", .action = Reshape{}, .inputs = {0}, .output = 1}};
  model.output = 1;
  expect_same(model, images_of(model, 2, 9), "a reshape");
}

/// Weights that need the sums of the pixels, from images of one pixel, with a stride that has nowhere to go.
TEST(IntegerEngine, StridesOverImagesOfAPixel) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomModel net(seed, {1, 1, 32}, {.only_bits = 8});
    net.conv2d(21);
    Model model = net.finish();
    auto& layer = std::get<Layer>(model.operations[0].action);
    layer.window.rows.stride = layer.window.columns.stride = 2;
    model.operations[0].clamp = {.min = 0, .max = 255};
    expect_same(model, random_images(net.random(), model, 7), concat("seed ", seed));
  }
}

TEST(IntegerEngine, AReshapesMemoryIsItsInputs) {
  RandomModel net(1, {4, 4, 3});
  net.conv2d(8);
  // What follows must not be written over what the Reshape shares.
  net.fully_connected(300);
  net.fully_connected(200);
  net.fully_connected(10);
  expect_same(net, 5, "reshape");
}

TEST(IntegerEngine, RefusesWrongModelsAndImages) {
  Model model = testing::random_network(1);
  Engine engine(model);
  EXPECT_NE(testing::error_of([&] { engine.run(Tensor({2, 9, 11, 4}, DType::kUInt8)); }), "");
  EXPECT_NE(testing::error_of([&] { engine.run_all(Tensor({2, 9, 11, 3})); }), "");
  model.operations[1].clamp.max = 256;
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { Engine broken(model); }), {"clamp"}));
}

}  // namespace
}  // namespace miniqat::integer::engine_test
