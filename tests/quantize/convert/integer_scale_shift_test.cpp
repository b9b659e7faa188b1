// Constants that multiply and add, among integers: one number is a table, one for each channel a depthwise convolution.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "quantize/quantize.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/scale_shift_net.h"

namespace miniqat::quantize::integer_scale_shift_test {
namespace {

using testing::EvalNet;
using testing::mentions;
using testing::operations_of;
using testing::Texts;

/// A quantized tensor of three channels, and constants to combine it with.
struct ScaleShiftNet : EvalNet {
  Output x = quantizer("x", conv("a", images(), 3), {-4, 5});
  Output number(double value) { return layers::constant(graph, graph.unique_name("number"), {}, {value}); }
  Output by_channel(std::vector<float> values) {
    return variable(graph.unique_name("channels"), {1, 1, 1, 3}, std::move(values));
  }
};

TEST(ConvertScaleShift, OneNumberForEachChannelIsADepthwiseConvolution) {
  ScaleShiftNet net;
  Output y = layers::mul(net.graph, "Mul", net.by_channel({0.5, -30, 0.01f}), net.x);
  y = layers::sub(net.graph, "Sub", net.number(2), y);
  y = layers::bias_add(net.graph, "BiasAdd", y, net.variable("biases", {3}, {1, -3, 0}));
  const integer::Model model = net.faithful(net.quantizer("y", layers::relu(net.graph, "Relu", y), {0, 20}));
  EXPECT_EQ(operations_of(model).back(), "DepthwiseConv2d Mul -> y");
  const auto& layer = std::get<integer::Layer>(model.operations.back().action);
  for (const auto& [c, factor, offset] :
       {std::tuple(0, -0.5, 3.0), std::tuple(1, 30.0, -1.0), std::tuple(2, -0.01, 2.0)}) {
    const double weight = double{layer.weight_scale(c)} * (layer.weights[static_cast<std::size_t>(c)] - 128);
    EXPECT_NEAR(weight, factor, 1e-6 * std::abs(factor));
    const double unit = double{model.tensors[1].grid.scale} * layer.unit_scale(c);
    EXPECT_NEAR(unit * layer.bias[static_cast<std::size_t>(c)], offset, unit / 2 + 1e-6);
  }
}

/// Offsets alone leave one scale for all weights, which every format has.
TEST(ConvertScaleShift, OffsetsShareAScale) {
  ScaleShiftNet net;
  const Output y = layers::add(net.graph, "Add", net.x, net.by_channel({1, -1, 0}));
  const integer::Model model = net.faithful(net.quantizer("y", y, {-5, 6}));
  EXPECT_FALSE(std::get<integer::Layer>(model.operations.back().action).per_channel());
}

TEST(ConvertScaleShift, RowsAreImagesForAMoment) {
  ScaleShiftNet net;
  const Output rows = layers::mean(net.graph, "Mean", net.x, {.axes = {1, 2}});
  Output y = net.quantizer("rows", rows, {-4, 5});
  y = layers::mul(net.graph, "Mul", y, net.variable("factors", {3}, {1, 0, 2}));
  y = layers::reshape(net.graph, "Reshape", y, {.shape = {2, 3, 1}});
  const integer::Model model = net.faithful(net.quantizer("y", y, {-9, 9}));
  const Texts texts = operations_of(model);
  EXPECT_EQ(Texts(texts.end() - 4, texts.end()),
            (Texts{"Reshape Mul:image -> rows:image", "DepthwiseConv2d Mul -> Mul:image", "Reshape Mul:back -> Mul",
                   "Reshape Reshape -> y"}));
}

TEST(ConvertScaleShift, RefusalsNameTheNode) {
  ScaleShiftNet net;
  const auto refused = [&](Output y) { return net.refusal(net.quantizer(net.graph.unique_name("out"), y, {-1, 1})); };
  const Output map = layers::mul(net.graph, "map", net.x, net.variable("pixels", {6, 6, 3}));
  EXPECT_TRUE(mentions(refused(map), {"[Mul \"map\"]", "pixels [6,6,3]", "one number, or one for each channel"}));
  const Output stretched =
      layers::mul(net.graph, "stretched",
                  net.quantizer("g", layers::mean(net.graph, "m", net.x, {.axes = {3}, .keep_dims = true}), {-1, 1}),
                  net.variable("wide", {3}));
  EXPECT_NE(refused(stretched), "");
  EXPECT_TRUE(mentions(refused(layers::div(net.graph, "over", net.number(1), net.x)),
                       {"[Div \"over\"]", "cannot be part of an integer model"}));
  EXPECT_TRUE(
      mentions(refused(layers::div(net.graph, "none", net.x, net.number(0))), {"[Div \"none\"]", "divides by 0"}));
  const Output large = layers::mul(net.graph, "large", net.x, net.by_channel({3e38f, 1, 1}));
  EXPECT_TRUE(mentions(refused(layers::mul(net.graph, "larger", large, net.number(1e9))),
                       {"\"large\": channel 0 is multiplied by 3e+47"}));
  const Output free =
      layers::mul(net.graph, "free", layers::identity(net.graph, "sum", net.conv("b", net.x)), net.number(2));
  EXPECT_TRUE(mentions(refused(free), {"\"free\"", "reads sum", "no range"}));
}

TEST(TrainedScaleShift, IntegersOfConstantsBetweenLayers) {
  testing::expect_trained_integers(testing::scale_shift_net());
}

/// One quantizer for a chain of scales and shifts and its clamp, and none before it.
TEST(TrainedScaleShift, TheLastOfAChainIsQuantized) {
  Graph graph = testing::scale_shift_net();
  const RewriteReport report = create_training_graph(graph, {.strict = true});
  const Texts expected = {"in/Mul/activation_Mul_quant", "scale/Relu6/activation_Relu6_quant",
                          "Clip/activation_Clip_quant", "rows/Add/activation_Add_quant", "Mean/activation_Mean_quant"};
  for (const std::string& name : expected) EXPECT_TRUE(std::ranges::count(report.inserted, name)) << name;
  const auto quantizers = std::ranges::count_if(
      report.inserted, [](const std::string& name) { return name.find("activation") != std::string::npos; });
  EXPECT_EQ(quantizers, std::ssize(expected)) << report.text();
  Graph again = graph.clone();
  EXPECT_TRUE(create_training_graph(again, {}).inserted.empty());
}

/// An Add of a constant behind a Relu could be a bypass; in a chain it is none.
TEST(TrainedScaleShift, AChainBehindALayersReluHasOneQuantizer) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {4, 8, 8, 3});
  Output x = layers::relu(graph, "a/Relu", testing::conv_bias(graph, "a", images, 3, 4));
  x = layers::add(graph, "Add", x, layers::constant(graph, "one", {}, {1}));
  x = layers::mul(graph, "Mul", x, layers::constant(graph, "third", {}, {1.0 / 3}));
  graph.set_outputs({testing::conv_bias(graph, "b", x, 1, 4)});
  const RewriteReport report = create_training_graph(graph, {.strict = true});
  EXPECT_EQ(report.inserted,
            (Texts{"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant", "Mul/activation_Mul_quant"}));
  EXPECT_NE(report.text().find("after the bypass Add -> no quantizer, a Mul follows"), std::string::npos);
}

/// A chain whose end is outside the scope keeps its float edges, and the report says so.
TEST(TrainedScaleShift, AChainThatLeavesTheScopeIsLeftFloat) {
  Graph graph = testing::scale_shift_net();
  const RewriteReport report = create_training_graph(graph, {.scope = "stem"});
  for (const EdgeReport& edge : report.edges)
    if (edge.consumer == "in/Sub" || edge.consumer == "in/Mul") {
      EXPECT_NE(edge.status, EdgeStatus::kFused) << edge.tensor;
    }
}

}  // namespace
}  // namespace miniqat::quantize::integer_scale_shift_test
