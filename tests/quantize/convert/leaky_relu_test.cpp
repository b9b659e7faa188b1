// LeakyRelu among integers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "quantize/quantize.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::leaky_relu_test {
namespace {

using testing::EvalNet;

TEST(ConvertLeakyRelu, IsATableWithItsSlope) {
  for (const double alpha : {0.1, 0.3}) {
    EvalNet net;
    const Output x = net.quantizer("x", net.conv("a", net.images()), {-4, 5});
    const Output y = layers::leaky_relu(net.graph, "LeakyRelu", x, {.alpha = alpha});
    const integer::Model model = net.faithful(net.quantizer("y", y, {-0.7f, 5}));
    EXPECT_EQ(testing::operations_of(model).back(), "Lookup LeakyRelu -> y");
    const auto& lookup = std::get<integer::Lookup>(model.operations.back().action);
    EXPECT_EQ(lookup.function, "LeakyRelu");
    const integer::Grid &from = model.tensors[1].grid, &to = model.tensors[2].grid;
    for (int q = 0; q < 256; ++q) {
      const double real = double{from.scale} * (q - from.zero_point);
      const double place = (real < 0 ? alpha * real : real) / to.scale + to.zero_point;
      EXPECT_EQ(lookup.table[static_cast<std::size_t>(q)], std::clamp(std::floor(place + 0.5), 0.0, 255.0)) << q;
    }
  }
}

/// The layer before it keeps its numbers below 0, and so do the results.
TEST(TrainedLeakyRelu, IntegersOfABlock) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {4, 8, 8, 3});
  x = layers::leaky_relu(graph, "stem/LeakyRelu", testing::conv_bias(graph, "stem", x, 3, 16), {.alpha = 0.2});
  x = layers::leaky_relu(graph, "project/LeakyRelu", testing::conv_bias(graph, "project", x, 1, 6), {.alpha = 0.1});
  x = layers::mean(graph, "Mean", x, {.axes = {1, 2}});
  x = layers::matmul(graph, "dense/MatMul", x, layers::variable(graph, "dense/weights", {6, 5}));
  graph.set_outputs({x});
  Graph rewritten = graph.clone();
  const RewriteReport report = create_training_graph(rewritten, {.strict = true});
  for (const char* quantizer : {"stem/act_quant", "stem/LeakyRelu/activation_LeakyRelu_quant"})
    EXPECT_TRUE(std::ranges::count(report.inserted, quantizer)) << report.text();
  testing::expect_trained_integers(graph);
}

}  // namespace
}  // namespace miniqat::quantize::leaky_relu_test
