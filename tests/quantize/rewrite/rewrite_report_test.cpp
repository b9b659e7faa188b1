#include "quantize/rewrite/rewrite_report.h"

#include <gtest/gtest.h>

#include "quantize/rewrite/insert_fake_quant.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::rewrite_report_test {
namespace {

using testing::ToyGraph;

/// "status: reason" of an edge, or "none".
std::string edge(const RewriteReport& report, const std::string& tensor, const std::string& consumer) {
  for (const EdgeReport& edge : report.edges)
    if (edge.tensor == tensor && edge.consumer == consumer)
      return std::string(name_of(edge.status)) + ": " + edge.reason;
  return "none";
}

std::string match(const RewriteReport& report, const std::string& layer) {
  for (const MatchReport& match : report.matches)
    if (match.layer == layer)
      return (match.matched ? "matched: " : match.statistics ? "statistics: " : "skipped: ") + match.text;
  return "none";
}

TEST(RewriteReport, NamesOfStatuses) {
  EXPECT_EQ(name_of(EdgeStatus::kQuantized), "quantized");
  EXPECT_EQ(name_of(EdgeStatus::kFused), "fused");
  EXPECT_EQ(name_of(EdgeStatus::kPassedThrough), "passed through");
  EXPECT_EQ(name_of(EdgeStatus::kInput), "input");
  EXPECT_EQ(name_of(EdgeStatus::kLeftFloat), "left float");
}

TEST(RewriteReport, TextOfASmallClassifier) {
  ToyGraph toy;
  const Output pooled = layers::max_pool(toy.graph, "pool/MaxPool", toy.conv_relu("conv1", toy.images()));
  const Output flat = layers::reshape(toy.graph, "flat", pooled, {.shape = {1, 8}});
  const Output logits = layers::matmul(toy.graph, "fc/MatMul", flat, layers::variable(toy.graph, "fc/weights", {8, 3}));
  layers::softmax_cross_entropy(toy.graph, logits, layers::placeholder(toy.graph, "labels", {1}, DType::kInt32));
  EXPECT_EQ(create_training_graph(toy.graph).text(),
            R"(2 layers matched, 0 skipped; 4 quantizers inserted

layers
  conv1/Conv2D  matched  layer + bias + Relu: weights conv1/weights -> conv1/weights_quant, output conv1/Relu -> conv1/act_quant
  fc/MatMul     matched  layer: weights fc/weights -> fc/weights_quant, output fc/MatMul -> fc/act_quant

edges
  images         -> conv1/Conv2D   input           the data set brings scale and zero point
  conv1/weights  -> conv1/Conv2D   quantized       conv1/weights_quant
  conv1/Conv2D   -> conv1/BiasAdd  fused           computed with conv1/Conv2D
  conv1/biases   -> conv1/BiasAdd  fused           bias of conv1/Conv2D
  conv1/BiasAdd  -> conv1/Relu     fused           computed with conv1/Conv2D
  conv1/Relu     -> pool/MaxPool   quantized       conv1/act_quant
  pool/MaxPool   -> flat           passed through  range of conv1/act_quant
  flat           -> fc/MatMul      passed through  range of conv1/act_quant
  fc/weights     -> fc/MatMul      quantized       fc/weights_quant
  fc/MatMul      -> loss           quantized       fc/act_quant
  labels         -> loss           input           int32, nothing to quantize
)");
}

TEST(RewriteReport, EmptyGraph) {
  Graph graph;
  EXPECT_EQ(create_training_graph(graph).text(), "0 layers matched, 0 skipped; 0 quantizers inserted\n");
}

TEST(RewriteReport, BypassesAreSpelledOut) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output relu = layers::relu(toy.graph, "b/Relu", layers::add(toy.graph, "b/Add", toy.conv_bias("b/conv", x), x));
  layers::relu(toy.graph, "c/Relu", layers::add(toy.graph, "c/Add", relu, x));
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(
      match(report, "b/conv/Conv2D"),
      "matched: layer + bias + bypass + Relu + post-activation bypass: weights b/conv/weights -> "
      "b/conv/weights_quant, before the bypass b/conv/BiasAdd -> b/conv/conv_quant, output b/Relu -> b/act_quant, "
      "after the bypass c/Add -> no quantizer, a Relu follows");
  EXPECT_EQ(edge(report, "b/conv/BiasAdd", "b/Add"), "quantized: b/conv/conv_quant");
  EXPECT_EQ(edge(report, "b/Add", "b/Relu"), "fused: computed with b/conv/Conv2D");
  EXPECT_EQ(edge(report, "images", "b/Add"), "input: the data set brings scale and zero point");
  EXPECT_EQ(edge(report, "c/Add", "c/Relu"), "fused: quantized after c/Relu");
}

TEST(RewriteReport, FoldedBatchNorm) {
  ToyGraph toy;
  const Output x = toy.conv_relu("a", toy.images());
  layers::relu(toy.graph, "b/Relu", toy.batch_norm("b", toy.conv("b", x)));
  const RewriteReport report = create_training_graph(toy.graph);
  ASSERT_EQ(report.batch_norms.size(), 1u);
  EXPECT_EQ(report.batch_norms[0].text, "into b/Conv2D_Fold");
  EXPECT_EQ(match(report, "b/Conv2D"), "statistics: kept for the statistics of [BatchNorm \"b/BatchNorm\"]");
  EXPECT_EQ(match(report, "b/Conv2D_Fold"),
            "matched: layer + correction + bias + Relu: weights b/mul_fold -> b/weights_quant, output b/Relu -> "
            "b/act_quant");
  EXPECT_EQ(edge(report, "a/Relu", "b/Conv2D"), "statistics: for batch norm, while it trains");
  EXPECT_EQ(edge(report, "a/Relu", "b/Conv2D_Fold"), "quantized: a/act_quant");
  EXPECT_EQ(edge(report, "b/Conv2D", "b/BatchNorm"), "statistics: for batch norm, while it trains");
  EXPECT_EQ(edge(report, "b/BatchNorm:1", "b/BatchNorm_Fold"), "fused: folded batch norm");
  EXPECT_EQ(edge(report, "b/weights", "b/correction_mult"), "fused: weights of b/Conv2D_Fold");
  EXPECT_EQ(edge(report, "b/Conv2D_Fold", "b/post_conv_mul"), "fused: computed with b/Conv2D_Fold");
  EXPECT_EQ(edge(report, "b/batch_norm_correction:1", "b/post_conv_mul"), "fused: folded batch norm");
  for (const EdgeReport& each : report.edges) EXPECT_NE(each.status, EdgeStatus::kLeftFloat) << each.tensor;
  EXPECT_TRUE(report.text().starts_with("2 layers matched, 0 skipped; 1 batch norm folded; 4 quantizers inserted\n"));
}

TEST(RewriteReport, EveryFloatEdgeHasItsReason) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output half = layers::constant(toy.graph, "half", {}, {0.5});
  const Output squared = layers::square(toy.graph, "squared", images);
  const Output a = toy.conv_bias("a", layers::mul(toy.graph, "scaled", squared, half));
  const Output one = layers::relu(toy.graph, "a/one", a);
  layers::square(toy.graph, "a/two", a);
  const Output normed = toy.batch_norm("b", layers::square(toy.graph, "b/square", toy.conv_bias("b", one)));
  const Output pooled = layers::max_pool(toy.graph, "pool", normed, {.window = {1, 1}, .strides = {1, 1}});
  const Output c = toy.conv("c", pooled, layers::constant(toy.graph, "c/fixed", {1, 1, 2, 2}, {1}));
  layers::square(toy.graph, "square", layers::softmax(toy.graph, "softmax", c));
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(edge(report, "half", "scaled"), "left float: a parameter, but no layer's weights");
  EXPECT_EQ(edge(report, "scaled", "a/Conv2D"), "left float: none of its inputs is quantized");
  EXPECT_EQ(edge(report, "a/BiasAdd", "a/one"), "fused: computed with a/Conv2D");
  EXPECT_EQ(edge(report, "a/BiasAdd", "a/two"), "left float: read inside a/Conv2D's match, before the quantizer");
  EXPECT_EQ(edge(report, "b/square", "b/BatchNorm"), "left float: Square outside of any match stays float");
  EXPECT_EQ(edge(report, "b/gamma", "b/BatchNorm"), "left float: a parameter of a batch norm that stays float");
  EXPECT_EQ(edge(report, "pool", "c/Conv2D"), "left float: passes on b/BatchNorm: none of its inputs is quantized");
  ASSERT_EQ(report.batch_norms.size(), 1u);
  EXPECT_EQ(
      report.batch_norms[0].text,
      "its input comes from [Square \"b/square\"], not from a layer; left float: none of its inputs is quantized");
  EXPECT_EQ(match(report, "c/Conv2D"), "skipped: its weights come from [Constant \"c/fixed\"], not from a Variable");
  EXPECT_EQ(edge(report, "c/Conv2D", "softmax"),
            "left float: its weights come from [Constant \"c/fixed\"], not from a Variable");
  EXPECT_EQ(edge(report, "softmax", "square"), "left float: Softmax outside of any match stays float");
}

TEST(RewriteReport, ScopeIsAReason) {
  ToyGraph toy;
  toy.conv_relu("b", toy.conv_relu("a", toy.images()));
  const RewriteReport report = create_training_graph(toy.graph, {.scope = "b"});
  EXPECT_EQ(match(report, "a/Conv2D"), "skipped: outside scope \"b\"");
  EXPECT_EQ(edge(report, "a/weights", "a/Conv2D"), "left float: outside scope \"b\"");
  EXPECT_EQ(edge(report, "a/Relu", "b/Conv2D"), "left float: outside scope \"b\"");
}

TEST(RewriteReport, WeightsOnTheirWayToALayer) {
  ToyGraph toy;
  const Output parts = layers::concat(
      toy.graph, "whole",
      {layers::variable(toy.graph, "first", {1, 1, 2, 1}), layers::variable(toy.graph, "second", {1, 1, 2, 1})});
  toy.conv("a", toy.images(), layers::identity(toy.graph, "read", parts));
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(edge(report, "first", "whole"), "fused: weights of a/Conv2D");
  EXPECT_EQ(edge(report, "whole", "read"), "fused: weights of a/Conv2D");
  EXPECT_EQ(edge(report, "read", "a/Conv2D"), "quantized: a/weights_quant");
}

TEST(RewriteReport, MatMulOfTwoActivationsIsSkipped) {
  ToyGraph toy;
  const Output x = layers::placeholder(toy.graph, "x", {2, 2});
  layers::matmul(toy.graph, "MatMul", x, x);
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(match(report, "MatMul"), "skipped: neither operand comes from a Variable");
  EXPECT_NE(report.text().find("0 layers matched, 1 skipped; 0 quantizers inserted"), std::string::npos);
}

TEST(RewriteReport, SaysWhyWeightsHaveOneRange) {
  ToyGraph toy;
  const Output shared = toy.filter("shared");
  toy.conv("b", toy.conv("a", toy.images(), shared), shared);
  RewriteOptions options{.per_channel = true};
  options.layer_bits = {{.pattern = "a", .per_channel = false}};
  const RewriteReport report = create_training_graph(toy.graph, options);
  EXPECT_EQ(match(report, "b/Conv2D"),
            "matched: layer: weights shared -> a/weights_quant (per tensor: shared with a/Conv2D), output b/Conv2D -> "
            "b/act_quant");
  EXPECT_EQ(match(create_training_graph(toy.graph, options), "b/Conv2D"), match(report, "b/Conv2D"));
}

TEST(RewriteReport, SaysThatWeightsWereQuantizedBefore) {
  ToyGraph toy;
  toy.conv("a", toy.images(), fake_quant(toy.graph, "mine", toy.filter("weights"), {}));
  EXPECT_EQ(match(create_training_graph(toy.graph, {.per_channel = true}), "a/Conv2D"),
            "matched: layer: weights weights -> mine (moving average) (per tensor: quantized before), output a/Conv2D "
            "-> a/act_quant");
}

TEST(RewriteReport, SaysThatWeightsAreSharedWithOtherChannels) {
  ToyGraph toy;
  const Output x = layers::placeholder(toy.graph, "x", {2, 3}), weights = layers::variable(toy.graph, "w", {3, 3});
  layers::matmul(toy.graph, "a/MatMul", x, weights);
  layers::matmul(toy.graph, "b/MatMul", x, weights, {.transpose_b = true});
  const RewriteReport report = create_training_graph(toy.graph, {.per_channel = true});
  EXPECT_NE(match(report, "a/MatMul").find("(per tensor: shared with other channels)"), std::string::npos);
  EXPECT_NE(match(report, "b/MatMul").find("(per tensor: the last axis is not the output channel)"), std::string::npos);
}

TEST(RewriteReport, FloatReluDoesNotTakeWhatIsBeforeIt) {
  ToyGraph toy;
  const Output sum =
      layers::add(toy.graph, "in/sum", toy.conv("in/a", toy.images()), toy.conv("in/b", toy.images("more")));
  layers::relu(toy.graph, "in/Relu", layers::max_pool(toy.graph, "pool", layers::add(toy.graph, "in/twice", sum, sum)));
  layers::relu(toy.graph, "out/Relu", layers::add(toy.graph, "in/left", sum, sum));
  const RewriteReport report = create_training_graph(toy.graph, {.scope = "in"});
  EXPECT_EQ(edge(report, "in/left", "out/Relu"), "left float: left to out/Relu, which follows");
}

TEST(RewriteReport, TensorThatFeedsAQuantizerBesideItsReaders) {
  ToyGraph toy;
  const Output x = toy.conv_relu("a", toy.images());
  fake_quant(toy.graph, "mine", layers::identity(toy.graph, "copy", x), {});
  toy.conv("b", x);
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(edge(report, "a/Relu", "b/Conv2D"), "left float: read beside its quantizer mine");
}

TEST(RewriteReport, UnquantizedEdgesAreWhatStrictRefuses) {
  ToyGraph toy;
  toy.conv("b", layers::softmax(toy.graph, "softmax", toy.conv("a", toy.images())));
  const LayerSearch layers = find_layers(toy.graph, "");
  const Verdicts verdicts = insert_fake_quants(toy.graph, layers.matches, {}, true);
  const RewriteReport report = report_rewrite(toy.graph, layers, verdicts, {});
  EXPECT_EQ(unquantized_edges(toy.graph, layers.skips, verdicts, {}, report),
            (testing::Names{"softmax -> b/Conv2D (Softmax outside of any match stays float)"}));
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_report_test
