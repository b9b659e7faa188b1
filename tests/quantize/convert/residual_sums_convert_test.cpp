// Sums of 8 bits whose layers read fewer, as integers.

#include <gtest/gtest.h>

#include <numeric>

#include "integer/engine.h"
#include "models/models.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::residual_sums_convert_test {
namespace {

using testing::EvalNet;
using testing::operations_of;
using testing::Texts;

/// An input of 8 bits in the one range, read in `bits` bits over the other; every integer of the input.
struct Narrowing {
  EvalNet net;
  integer::Model model;
  Tensor all{Shape{1, 16, 16, 1}, DType::kUInt8};

  Narrowing(Range<float> wide, Range<float> narrow, int bits) {
    FakeQuantAttributes attributes = EvalNet::evaluating();
    attributes.bits = bits;
    const Output sum = net.quantizer("sum", net.images({1, 16, 16, 1}), wide);
    model = net.convert(net.quantizer("edge", sum, narrow, attributes));
    std::iota(all.data<std::uint8_t>(), all.data<std::uint8_t>() + 256, std::uint8_t{0});
  }

  std::vector<int> integers() const {
    const Tensor result = integer::reference::run(model, all).back();
    const auto values = result.values<std::uint8_t>();
    integer::Engine engine(model);
    const Tensor fast = engine.run(all);
    EXPECT_TRUE(std::ranges::equal(values, fast.values<std::uint8_t>()));
    EXPECT_EQ(testing::output_difference(net.graph, net.variables, model, all), 0) << "simulation";
    return {values.begin(), values.end()};
  }
};

/// Steps of 1/4 become steps of 1: nearest, ties upwards, clamped to 4 bits.
TEST(ResidualSumsConvert, LayersReadTheNearestIntegerOfTheirGrid) {
  const Narrowing narrowing({0, 63.75f}, {0, 15}, 4);
  EXPECT_EQ(operations_of(narrowing.model), Texts{"Rescale edge -> edge"});
  const std::vector<int> y = narrowing.integers();
  const std::vector<int> first = {0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3};
  EXPECT_TRUE(std::equal(first.begin(), first.end(), y.begin()));
  EXPECT_EQ(y[57], 14);
  EXPECT_EQ(y[58], 15);
  EXPECT_EQ(y[62], 15) << "15.5 has no integer";
  EXPECT_EQ(y[255], 15);
}

TEST(ResidualSumsConvert, NegativeTiesGoUpwardsToo) {
  const std::vector<int> y = Narrowing({-32, 31.75f}, {-8, 7}, 4).integers();
  EXPECT_EQ(y[128], 8);
  EXPECT_EQ(y[126], 8) << "-0.5";
  EXPECT_EQ(y[125], 7) << "-0.75";
  EXPECT_EQ(y[122], 7) << "-1.5";
  EXPECT_EQ(y[121], 6) << "-1.75";
  EXPECT_EQ(y[0], 0);
}

TEST(ResidualSumsConvert, AnyRangesGiveTheIntegersOfTheSimulation) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const float low = random.below(2) == 0 ? 0 : random.uniform(-4, 0), high = random.uniform(0.1f, 6);
    const Range<float> narrow = {low * random.uniform(0.3f, 1), high * random.uniform(0.3f, 1)};
    Narrowing({low, high}, narrow, 2 + static_cast<int>(random.below(6))).integers();
  }
}

/// Two blocks, the second with half the pixels and twice the channels.
Graph residual_net() {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {3, 8, 8, 3});
  x = layers::relu(graph, "in/Relu", testing::conv_bias(graph, "in", x, 3, 8));
  const Output a = layers::relu(graph, "one/a/Relu", testing::conv_bias(graph, "one/a", x, 3, 8));
  x = layers::add(graph, "one/Add", testing::conv_bias(graph, "one/b", a, 3, 8), x);
  x = layers::relu(graph, "one/Relu", x);
  Output kept = layers::max_pool(graph, "two/pool", x, {.window = {2, 2}, .strides = {2, 2}});
  kept = layers::pad(graph, "two/pad", kept, {.paddings = {{0, 0}, {0, 0}, {0, 0}, {4, 4}}});
  Output b = layers::max_pool(graph, "two/narrow", testing::conv_bias(graph, "two/a", x, 3, 16),
                              {.window = {2, 2}, .strides = {2, 2}});
  b = testing::conv_bias(graph, "two/b", layers::relu(graph, "two/a/Relu", b), 1, 16);
  x = layers::add(graph, "two/Add", b, kept);
  x = testing::conv_bias(graph, "out", layers::add(graph, "three/Add", x, testing::conv_bias(graph, "three", x, 1, 16)),
                         1, 5);
  graph.set_outputs({layers::mean(graph, "pool", x, {.axes = {1, 2}})});
  return graph;
}

TEST(ResidualSumsConvert, TrainedIntegersAreThoseOfTheSimulation) {
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned})
    for (const ScaleChoice scales : {ScaleChoice::kAny, ScaleChoice::kPowerOfTwo})
      testing::expect_trained_integers(residual_net(), {.ranges = ranges, .scales = scales, .sums_bits = 8});
}

TEST(ResidualSumsConvert, Resnet20HasARescaleForEachSumThatALayerReads) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 16, 16, 3});
  graph.set_outputs({models::find_model("resnet20").build(graph, images, {.outputs = 10, .width = 0.25})});
  for (const int bits : {4, 2}) {
    const testing::TrainedNet trained = testing::train_briefly(
        graph, {.weight_bits = bits, .activation_bits = bits, .sums_bits = 8, .per_channel = true});
    const integer::Model model = convert(trained.evaluation, trained.variables, {.input = testing::kPictures});
    int rescales = 0, sums = 0;
    for (const integer::Operation& operation : model.operations) {
      const bool is_sum = std::holds_alternative<integer::Add>(operation.action);
      if (is_sum) {
        EXPECT_EQ(model.output_of(operation).grid.bits, 8) << operation.name;
      }
      sums += is_sum ? 1 : 0;
      if (!std::holds_alternative<integer::Rescale>(operation.action)) continue;
      // For a layer whose biases need finer units: exact, and no narrowing.
      if (operation.name.ends_with(":finer")) continue;
      ++rescales;
      EXPECT_EQ(model.input_of(operation).grid.bits, 8) << operation.name;
      EXPECT_EQ(model.output_of(operation).grid.bits, bits) << operation.name;
      EXPECT_EQ(model.output_of(operation).grid.zero_point, 0) << operation.name;
    }
    EXPECT_EQ(sums, 9);
    EXPECT_EQ(rescales, 9) << "of the first layer's output and of eight sums; a pool reads the last";
    for (const testing::OperationCheck& check : testing::check_operations(
             trained.evaluation, trained.variables, model, testing::images_for(trained.evaluation, model, 1))) {
      EXPECT_LE(check.largest, 1) << check.operation;
      if (check.operation.ends_with("edge_quant")) {
        EXPECT_EQ(check.different, 0) << check.operation;
      }
    }
  }
}

}  // namespace
}  // namespace miniqat::quantize::residual_sums_convert_test
