// Layers of which one unit of the sums is more than half a step of the output: the bias must not be rounded to units.
#include "quantize/convert/integer_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/engine/session.h"
#include "integer/engine.h"
#include "integer/reference/engine.h"
#include "layers/layers.h"
#include "quantize/convert/convert.h"
#include "quantize/convert/integer_model_builder.h"
#include "quantize/fake_quant.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/random_net.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::integer_layer_test {
namespace {

using integer::Layer;
using integer::Model;
using testing::EvalNet;
using testing::operations_of;
using testing::Texts;
using testing::TrainedNet;

/// A matrix product of two inputs, on grids.
struct Product {
  integer::Grid x, y;
  /// [in, out], zero point 128.
  std::vector<std::uint8_t> weights;
  /// One, or one for each channel.
  std::vector<float> scales;
  std::vector<double> bias;

  Model model() const {
    IntegerModelBuilder builder("product");
    const auto channels = static_cast<std::int64_t>(bias.size());
    Layer layer = {.kind = integer::LayerKind::kFullyConnected};
    layer.filter = {static_cast<std::int64_t>(weights.size()) / channels, channels};
    layer.weights = weights;
    layer.weight_scales = scales;
    layer.weight_zero_points.assign(scales.size(), 128);
    const Pending pending = {.operation = "layer",
                             .action = layer,
                             .inputs = {builder.add_input("x", {layer.filter[0]}, x)},
                             .shape = {channels},
                             .tensor = "y",
                             .bias = bias};
    return builder.finish(builder.add(pending, whole(y), "y"));
  }

  double real(const std::vector<std::uint8_t>& inputs, std::size_t o) const {
    double sum = bias[o];
    for (std::size_t i = 0; i < inputs.size(); ++i)
      sum += (weights[i * bias.size() + o] - 128) * double{scales[scales.size() > 1 ? o : 0]} *
             (inputs[i] - x.zero_point) * double{x.scale};
    return sum;
  }

  /// Expects the integers nearest to real arithmetic, of the reference loops and the fast engine alike.
  void expect_real() const {
    const Model net = model();
    integer::Engine engine(net);
    std::vector<std::vector<std::uint8_t>> cases;
    const auto last = static_cast<std::uint8_t>(x.quant_max()), zero = static_cast<std::uint8_t>(x.zero_point);
    for (const std::uint8_t a : {std::uint8_t{0}, zero, std::uint8_t{1}, last})
      for (const std::uint8_t b : {zero, std::uint8_t{1}, last}) cases.push_back({a, b});
    for (const std::vector<std::uint8_t>& inputs : cases) {
      Tensor image(Shape{1, 2}, DType::kUInt8);
      std::ranges::copy(inputs, image.data<std::uint8_t>());
      const Tensor found = integer::reference::run(net, image)[net.output];
      for (std::size_t o = 0; o < bias.size(); ++o) {
        const double place = real(inputs, o) / y.scale + y.zero_point;
        const double unit = double{scales[scales.size() > 1 ? o : 0]} * double{x.scale} / double{y.scale};
        // Units that are fine, or that a finer input makes so, keep the rounding of the bias.
        const double bias_error = unit < 1.004 || x.bits < 8 ? 0.25 : 0;
        EXPECT_NEAR(found.data<std::uint8_t>()[o], std::clamp<double>(place, 0, y.quant_max()), 0.51 + bias_error)
            << "channel " << o << " of " << int{inputs[0]} << ", " << int{inputs[1]} << " at " << place;
      }
      EXPECT_TRUE(std::ranges::equal(found.values<std::uint8_t>(), engine.run(image).values<std::uint8_t>()));
    }
  }
};

/// Units of a step and of ever more, outputs with their zero at either end and between, biases anywhere on the grid and
/// off it, scales for all channels and for each.
TEST(CoarseUnits, ResultsAreTheNearestIntegers) {
  Random random(1);
  int lines = 0;
  for (const double unit : {1.005, 1.3, 2.0, 7.7, 64.0, 255.0, 382.0, 2000.0, 5e4, 1e7, 1e20})
    for (const int zero_point : {0, 1, 100, 254, 255})
      for (const bool per_channel : {false, true})
        for (const int bits : {8, 4, 2}) {
          Product product;
          const int y_bits = random.below(3) == 0 ? 3 : 8;
          product.x = {.scale = 0.05f, .zero_point = static_cast<int>(random.below(1u << bits)), .bits = bits};
          product.y = {.scale = 0.02f, .zero_point = zero_point * ((1 << y_bits) - 1) / 255, .bits = y_bits};
          const auto scale = static_cast<float>(unit * double{product.y.scale} / double{product.x.scale});
          product.scales.push_back(scale);
          if (per_channel) product.scales.insert(product.scales.end(), {scale * 0.001f, scale * 3});
          for (int i = 0; i < 6; ++i)
            product.weights.push_back(
                static_cast<std::uint8_t>(i % 2 == 0 ? 127 + random.below(3) : random.below(256)));
          for (int o = 0; o < 3; ++o) product.bias.push_back(random.uniform(-300, 300) * double{product.y.scale});
          SCOPED_TRACE(concat("unit ", unit, ", zero ", product.y.zero_point, ", input of ", bits, " bits"));
          product.expect_real();
          const auto made = operations_of(product.model());
          lines += std::ranges::count(made, "DepthwiseConv2d layer:bias -> y:image") > 0 ? 1 : 0;
        }
  EXPECT_GT(lines, 100);
}

/// An output of 1e-20 a step: whatever is not 0 is beyond its ends.
TEST(CoarseUnits, OutputsOfTinyScalesSaturate) {
  Product{.x = {.scale = 0.05f},
          .y = {.scale = 1e-20f, .zero_point = 100},
          .weights = {130, 90, 200, 17},
          .scales = {0.001f},
          .bias = {0, -1.25}}
      .expect_real();
}

/// Biases of whole units lose nothing, and no operation is added for them; nor where units are fine.
TEST(CoarseUnits, LayersWhoseBiasesFitStayAsTheyWere) {
  Product product = {.x = {.scale = 0.5f},
                     .y = {.scale = 0.125f, .zero_point = 100},
                     .weights = {130, 90, 200, 17},
                     .scales = {0.5f},
                     .bias = {0, -1.25}};
  EXPECT_EQ(operations_of(product.model()), Texts{"FullyConnected layer -> y"});
  product.scales = {0.1f};
  product.bias = {0.113, -1.167};
  EXPECT_EQ(operations_of(product.model()), Texts{"FullyConnected layer -> y"});
  product.scales = {0.5f};
  EXPECT_EQ(operations_of(product.model()),
            (Texts{"FullyConnected layer -> y:units", "Reshape layer:bias:image -> y:units:image",
                   "DepthwiseConv2d layer:bias -> y:image", "Reshape layer:bias:back -> y"}));
}

/// An input of few bits has room for finer steps, and its layer's sums with it.
TEST(CoarseUnits, AnInputOfFewBitsBecomesFiner) {
  Product product = {.x = {.scale = 0.5f, .zero_point = 1, .bits = 2},
                     .y = {.scale = 0.3f, .zero_point = 100},
                     .weights = {130, 90, 200, 17},
                     .scales = {0.5f},
                     .bias = {0.1, -1.25}};
  const Model model = product.model();
  EXPECT_EQ(operations_of(model), (Texts{"Rescale x:finer -> x:finer", "FullyConnected layer -> y"}));
  EXPECT_EQ(model.tensors[1].grid, (integer::Grid{.scale = 0.5f / 64, .zero_point = 64}));
  product.expect_real();
}

/// The largest difference, in steps, of any operation given equal inputs.
int largest_difference(const Graph& graph, const NamedTensors& variables, const Model& model) {
  int largest = 0;
  for (const testing::OperationCheck& check :
       testing::check_operations(graph, variables, model, testing::images_for(graph, model, 1)))
    largest = std::max(largest, check.largest);
  return largest;
}

TEST(CoarseUnits, NetsOfTwoBitsWithWideSumsAgree) {
  constexpr std::uint64_t kNets = 60;
  const std::uint64_t seeds = testing::fewer(kNets);
  int finer = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const TrainedNet net = testing::train_briefly(
        testing::well_formed_net(seed),
        {.weight_bits = 2, .activation_bits = 2, .sums_bits = 8, .per_channel = seed % 2 == 0}, seed);
    const Model model = convert(net.evaluation, net.variables, {.input = testing::kPictures});
    EXPECT_LE(largest_difference(net.evaluation, net.variables, model), 1) << "seed " << seed;
    for (const std::string& text : operations_of(model))
      finer += text.starts_with("Rescale") && text.ends_with(":finer");
  }
  EXPECT_TRUE(finer > 0 || seeds < kNets) << "few networks have one";
}

/// A layer of its own behind `x`, whose output has the range of what it gives for random pictures.
struct NextLayer : EvalNet {
  void expect_agreement(Output x, const std::vector<float>& weights, Range<float> range,
                        const std::vector<float>& biases) {
    FakeQuantAttributes attributes = evaluating();
    attributes.narrow_range = true;
    const std::int64_t in = x.shape().channels();
    const Output filter =
        quantizer("next/weights_quant", variable("next/weights", {1, 1, in, 2}, weights),
                  {*std::ranges::min_element(weights), *std::ranges::max_element(weights)}, attributes);
    Output y = layers::conv2d(graph, "next/Conv2D", x, filter);
    y = layers::bias_add(graph, "next/BiasAdd", y, variable("next/biases", {2}, biases));
    const Model model = faithful(quantizer("y", y, range));
    EXPECT_LE(largest_difference(graph, variables, model), 1);
    EXPECT_EQ(std::ranges::count(operations_of(model), "DepthwiseConv2d next/Conv2D:bias -> y"), 1);
  }
};

TEST(CoarseUnits, AConcatOfRangesAThousandTimesApart) {
  NextLayer net;
  const Output a = net.quantizer("a", net.conv("a", net.images(), 2), {-3, 4});
  const Output large = layers::mul(net.graph, "large", a, layers::constant(net.graph, "thousand", {}, {1000}));
  const Output b = net.quantizer("b", large, {-3000, 4000});
  const Output both = net.quantizer("both", layers::concat(net.graph, "concat", {a, b}), {-3000, 4000});
  net.expect_agreement(both, {0.9f, -0.4f, 0.3f, 0.7f, 0, 0, 0, 0}, {-2, 2}, {0.37f, -0.61f});
}

TEST(CoarseUnits, AnAddOfALargeConstant) {
  NextLayer net;
  const Output a = net.quantizer("a", net.conv("a", net.images(), 2), {-3, 4});
  const Output sum = layers::add(net.graph, "add", a, layers::constant(net.graph, "constant", {}, {5000}));
  net.expect_agreement(net.quantizer("sum", sum, {0, 5004}), {0.9f, -0.4f, -0.9f, 0.4f}, {-4, 4}, {0.37f, -0.61f});
}

/// gamma and beta of 0 in a layer before: its tensor is all zeros, and its learned range is where it began.
TEST(CoarseUnits, ATensorOfZerosWhoseRangeIsNotEmpty) {
  NextLayer net;
  const Output zeros =
      layers::conv2d(net.graph, "zeros/Conv2D", net.images(),
                     net.quantizer("zeros/weights_quant",
                                   net.variable("zeros/weights", {1, 1, 3, 2}, std::vector<float>(6, 0)), {-1, 1}));
  net.expect_agreement(net.quantizer("zeros", zeros, {-6, 6}), {0.9f, -0.4f, 0.3f, 0.7f}, {0, 0.011f},
                       {0.01f, 0.0033f});
}

/// One weight of 1e10, whose input is never anything but 0.
TEST(CoarseUnits, AHugeWeightOfAnInputThatIsZero) {
  NextLayer net;
  const Output zeros =
      layers::pad(net.graph, "pad", net.images({2, 6, 6, 1}), {.paddings = {{0, 0}, {0, 0}, {0, 0}, {0, 1}}});
  net.expect_agreement(zeros, {0.9f, -0.4f, 1e10f, 0}, {-1, 1}, {0.37f, -0.61f});
}

// Weights and biases as integers: the ordinary case, and the scales that leave a bias no room.

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
