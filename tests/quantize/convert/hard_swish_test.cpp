// HardSwish among integers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "quantize/quantize.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::hard_swish_test {
namespace {

using testing::EvalNet;

TEST(ConvertHardSwish, IsATable) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-4, 5});
  const integer::Model model =
      net.faithful(net.quantizer("y", layers::hard_swish(net.graph, "HardSwish", x), {-0.4, 5}));
  EXPECT_EQ(testing::operations_of(model).back(), "Lookup HardSwish -> y");
  const auto& lookup = std::get<integer::Lookup>(model.operations.back().action);
  EXPECT_EQ(lookup.function, "HardSwish");
  const integer::Grid &from = model.tensors[1].grid, &to = model.tensors[2].grid;
  for (int q = 0; q < 256; ++q) {
    const double real = double{from.scale} * (q - from.zero_point);
    const double place = real * std::clamp(real + 3, 0.0, 6.0) / 6 / to.scale + to.zero_point;
    EXPECT_EQ(lookup.table[static_cast<std::size_t>(q)], std::clamp(std::floor(place + 0.5), 0.0, 255.0)) << q;
  }
}

/// A block of MobileNetV3 in small: convolutions with HardSwish, and a gate of Sigmoid.
TEST(TrainedHardSwish, IntegersOfABlock) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {4, 8, 8, 3});
  x = layers::hard_swish(graph, "stem/HardSwish", testing::conv_bias(graph, "stem", x, 3, 16));
  const Output gate = layers::sigmoid(graph, "gate/Sigmoid", testing::conv_bias(graph, "gate", x, 1, 16));
  x = layers::mul(graph, "gated", x, gate);
  x = layers::hard_swish(graph, "project/HardSwish", testing::conv_bias(graph, "project", x, 1, 6));
  x = layers::mean(graph, "Mean", x, {.axes = {1, 2}});
  x = layers::matmul(graph, "dense/MatMul", x, layers::variable(graph, "dense/weights", {6, 5}));
  graph.set_outputs({x});
  Graph rewritten = graph.clone();
  const RewriteReport report = create_training_graph(rewritten, {.strict = true});
  EXPECT_TRUE(std::ranges::count(report.inserted, "stem/HardSwish/activation_HardSwish_quant")) << report.text();
  const Node& quantizer = rewritten.at("stem/HardSwish/activation_HardSwish_quant");
  EXPECT_EQ(quantizer.as<FakeQuant>()->range, RangeKind::kMovingAverage) << "observed";
  testing::expect_trained_integers(graph);
}

}  // namespace
}  // namespace miniqat::quantize::hard_swish_test
