// Squeeze-and-excitation among integers: HardSigmoid is a table, Mul stretches its factors over the image.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "quantize/quantize.h"
#include "tests/errors.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::stretched_mul_test {
namespace {

using testing::EvalNet;

TEST(ConvertHardSigmoid, IsATableOfItsLine) {
  for (const double alpha : {1.0 / 6, 0.3}) {
    EvalNet net;
    const Output x = net.quantizer("x", net.conv("a", net.images()), {-4.1f, 5.27f});
    const Output y = layers::hard_sigmoid(net.graph, "HardSigmoid", x, {.alpha = alpha, .beta = 0.4});
    const integer::Model model = net.faithful(net.quantizer("y", y, {0, 1}));
    EXPECT_EQ(testing::operations_of(model).back(), "Lookup HardSigmoid -> y");
    const auto& lookup = std::get<integer::Lookup>(model.operations.back().action);
    const integer::Grid &from = model.tensors[1].grid, &to = model.tensors[2].grid;
    for (int q = 0; q < 256; ++q) {
      const double real = double{from.scale} * (q - from.zero_point);
      const double line = double{static_cast<float>(alpha)} * real + double{0.4f};
      const double place = std::clamp(line, 0.0, 1.0) / to.scale + to.zero_point;
      EXPECT_EQ(lookup.table[static_cast<std::size_t>(q)], std::clamp(std::floor(place + 0.5), 0.0, 255.0)) << q;
    }
  }
}

/// MobileNetV3's block: the mean of each channel decides how much of it stays.
Output excited(Graph& graph, Output x, bool factors_first) {
  const std::int64_t channels = x.shape().channels();
  Output s = layers::mean(graph, "squeeze/Mean", x, {.axes = {1, 2}, .keep_dims = true});
  s = layers::relu(graph, "squeeze/Relu", testing::conv_bias(graph, "squeeze", s, 1, 4));
  s = layers::hard_sigmoid(graph, "excite/HardSigmoid", testing::conv_bias(graph, "excite", s, 1, channels));
  return factors_first ? layers::mul(graph, "excite/Mul", s, x) : layers::mul(graph, "excite/Mul", x, s);
}

TEST(TrainedSqueezeAndExcitation, GivesTheIntegersOfTraining) {
  for (const bool factors_first : {false, true}) {
    Graph graph;
    Output x = layers::placeholder(graph, "images", {4, 8, 8, 3});
    x = layers::relu(graph, "stem/Relu", testing::conv_bias(graph, "stem", x, 3, 12));
    x = excited(graph, x, factors_first);
    x = layers::relu(graph, "project/Relu", testing::conv_bias(graph, "project", x, 1, 6));
    x = layers::mean(graph, "Mean", x, {.axes = {1, 2}});
    x = layers::matmul(graph, "dense/MatMul", x, layers::variable(graph, "dense/weights", {6, 5}));
    graph.set_outputs({x});
    Graph rewritten = graph.clone();
    const RewriteReport report = create_training_graph(rewritten, {.strict = true});
    for (const char* quantizer : {"excite/HardSigmoid/activation_HardSigmoid_quant", "excite/Mul/activation_Mul_quant"})
      EXPECT_TRUE(std::ranges::count(report.inserted, quantizer)) << report.text();
    testing::expect_trained_integers(graph);
  }
}

TEST(ConvertAdd, AStretchedOperandIsRefused) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-4, 5});
  const Output mean =
      net.quantizer("m", layers::mean(net.graph, "Mean", x, {.axes = {1, 2}, .keep_dims = true}), {-4, 5});
  const Output sum = net.quantizer("y", layers::add(net.graph, "sum", x, mean), {-4, 5});
  EXPECT_TRUE(
      testing::mentions(testing::error_of([&] { net.faithful(sum); }), {"[Add \"sum\"]", "stretches m", "one shape"}));
}

}  // namespace
}  // namespace miniqat::quantize::stretched_mul_test
