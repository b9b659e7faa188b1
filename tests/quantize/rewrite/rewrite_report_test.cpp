#include "quantize/rewrite/rewrite_report.h"

#include <gtest/gtest.h>

#include <set>

#include "models/models.h"
#include "quantize/op_roles.h"
#include "tests/errors.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::rewrite_report_test {
namespace {

using testing::error_of;
using testing::Names;
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
  EXPECT_EQ(error_of([&] { create_training_graph(toy.graph, {.strict = true}); }),
            "`strict`: left float: softmax -> b/Conv2D (Softmax outside of any match stays float)");
}

Names names_of(const std::vector<QuantizedTensor>& tensors) {
  Names names;
  for (const QuantizedTensor& tensor : tensors) names.push_back(tensor.quantizer);
  return names;
}

/// What a rewrite for evaluation reports; the graph stays as it is.
std::vector<LayerQuantizers> quantizers_of(const Graph& in_float, const RewriteOptions& options) {
  Graph graph = in_float.clone();
  return create_eval_graph(graph, options).quantizers;
}

TEST(LayerQuantizers, AreThoseOfWeightsAndOutput) {
  ToyGraph toy;
  toy.graph.set_outputs({toy.conv_bias("b", toy.conv_relu("a", toy.images()))});
  const std::vector<LayerQuantizers> layers = quantizers_of(toy.graph, {});
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].layer, "a/Conv2D");
  EXPECT_EQ(names_of(layers[0].weights), Names{"a/weights_quant"});
  EXPECT_EQ(names_of(layers[0].output), Names{"a/act_quant"});
  EXPECT_EQ(layers[0].weights[0].elements, 4);
  EXPECT_EQ(layers[0].output[0].elements, 32);
  EXPECT_EQ(layers[1].layer, "b/Conv2D");
}

TEST(LayerQuantizers, OfASharedTensorBelongToTheFirstLayer) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output weights = toy.filter("weights");
  const Output a = toy.conv("x/a", images, weights), b = toy.conv("x/b", images, weights);
  const Output sum = layers::add(toy.graph, "sum", a, b);
  toy.graph.set_outputs({layers::relu(toy.graph, "Relu", sum)});
  const std::vector<LayerQuantizers> layers = quantizers_of(toy.graph, {});
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(names_of(layers[0].weights), Names{"x/a/weights_quant"});
  EXPECT_EQ(names_of(layers[0].output), (Names{"x/a/conv_quant", "x/act_quant"}));
  EXPECT_EQ(names_of(layers[1].weights), Names{});
  EXPECT_EQ(names_of(layers[1].output), Names{"x/b/conv_quant"});
}

TEST(LayerQuantizers, OfAResidualSumAreThatOfTheSumAndThatOfLayers) {
  ToyGraph toy;
  const Output x = toy.conv_relu("in", toy.images());
  const Output sum = layers::add(toy.graph, "Add", toy.conv_bias("block/b", x), x);
  toy.graph.set_outputs({toy.conv_bias("c", layers::relu(toy.graph, "Relu", sum))});
  const std::vector<LayerQuantizers> layers = quantizers_of(toy.graph, {.activation_bits = 4, .sums_bits = 8});
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(names_of(layers[0].output), (Names{"in/act_quant", "in/edge_quant"}));
  EXPECT_EQ(names_of(layers[1].output), (Names{"block/b/conv_quant", "block/act_quant"}));
  EXPECT_EQ(names_of(layers[2].output), Names{"c/act_quant"});
}

/// The rewrite itself is the judge: bits of one layer change these quantizers and no others.
TEST(LayerQuantizers, AreThoseThatTheRewriteChanges) {
  for (const std::string model : {"lenet5", "resnet20", "mobilenet_v1", "mobilenet_v2"}) {
    Graph graph;
    const Output images = layers::placeholder(graph, "images", {2, 32, 32, 3});
    graph.set_outputs({models::find_model(model).build(graph, images, {.classes = 10, .width = 0.25})});
    const std::vector<LayerQuantizers> layers = quantizers_of(graph, {});
    EXPECT_GE(layers.size(), 5u);
    for (const LayerQuantizers& layer : layers) {
      Graph rewritten = graph.clone();
      create_eval_graph(
          rewritten,
          {.layer_bits = {{.pattern = pattern_of_layer(layer.layer), .weight_bits = 3, .activation_bits = 5}}});
      std::set<std::string> with_three, with_five;
      for (const Node* node : rewritten.nodes()) {
        if (!is_quantizer(*node)) continue;
        const std::int64_t bits = node->as<FakeQuant>()->bits;
        if (bits == 3) with_three.insert(node->name());
        if (bits == 5) with_five.insert(node->name());
      }
      const Names weights = names_of(layer.weights), output = names_of(layer.output);
      EXPECT_EQ(with_three, std::set(weights.begin(), weights.end())) << model << " " << layer.layer;
      EXPECT_EQ(with_five, std::set(output.begin(), output.end())) << model << " " << layer.layer;
    }
  }
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_report_test
