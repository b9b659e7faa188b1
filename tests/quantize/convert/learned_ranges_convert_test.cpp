// Nets with learned ranges, as integers.

#include <gtest/gtest.h>

#include "layers/layers.h"
#include "quantize/convert/convert.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::learned_ranges_convert_test {
namespace {

/// A block with a bypass, a Sigmoid, whose range is known, a pool and a dense end.
Graph net() {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {3, 8, 8, 3});
  x = layers::relu(graph, "a/Relu", testing::conv_bias(graph, "a", x, 3, 8));
  const Output sum = layers::add(graph, "Add", x, testing::conv_bias(graph, "b", x, 3, 8));
  x = layers::sigmoid(graph, "Sigmoid", sum);
  x = layers::avg_pool(graph, "pool", x, {.window = {2, 2}, .strides = {2, 2}});
  x = layers::reshape(graph, "flat", x, {.shape = {3, -1}});
  x = layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {128, 5}));
  graph.set_outputs({layers::bias_add(graph, "fc/BiasAdd", x, layers::variable(graph, "fc/biases", {5}))});
  return graph;
}

TEST(LearnedRangesConvert, TheIntegersAreThoseOfTheSimulation) {
  testing::expect_trained_integers(net(), {.ranges = RangeChoice::kLearned});
}

TEST(LearnedRangesConvert, AlsoWithAsymmetricWeights) {
  testing::expect_trained_integers(net(), {.ranges = RangeChoice::kLearned, .asymmetric_weights = true});
}

/// Multipliers are shifts, which is what the scales are for.
TEST(LearnedRangesConvert, ScalesThatArePowersOfTwoNeedOnlyShifts) {
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned}) {
    const RewriteOptions options = {.ranges = ranges, .scales = ScaleChoice::kPowerOfTwo, .per_channel = true};
    testing::expect_trained_integers(net(), options);
    const testing::TrainedNet trained = testing::train_briefly(net(), options);
    const integer::Model model = convert(trained.evaluation, trained.variables, {.input = testing::kPictures});
    std::size_t layers = 0;
    for (const integer::Operation& operation : model.operations) {
      const auto* layer = std::get_if<integer::Layer>(&operation.action);
      if (layer == nullptr) continue;
      // The first layer's pictures have the scale 1/255 of their data set.
      if (layers++ == 0) continue;
      for (const integer::Multiplier& multiplier : layer->multipliers) EXPECT_EQ(multiplier.mantissa, 1 << 30);
    }
    EXPECT_EQ(layers, 3u);
  }
}

TEST(LearnedRangesConvert, SymmetricWeightsHaveTheirZeroInTheMiddle) {
  const testing::TrainedNet trained =
      testing::train_briefly(net(), {.weight_bits = 4, .ranges = RangeChoice::kLearned});
  const integer::Model model = convert(trained.evaluation, trained.variables, {.input = testing::kPictures});
  int layers = 0;
  for (const integer::Operation& operation : model.operations)
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) {
      for (const std::int32_t zero_point : layer->weight_zero_points) EXPECT_EQ(zero_point, 8);
      ++layers;
    }
  EXPECT_EQ(layers, 3);
}

}  // namespace
}  // namespace miniqat::quantize::learned_ranges_convert_test
