#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/graph/graph_json.h"
#include "core/graph/op_queries.h"
#include "core/text/error.h"
#include "quantize/quantize.h"
#include "quantize/quantizers.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::rewrite_test {
namespace {

using testing::Names;
using testing::ToyGraph;

/// Writing JSON needs every op known.
void register_all() {
  layers::register_ops();
  register_ops();
}

/// A residual block, a concat, a dense end and a loss: something for every part of the rewrite.
ToyGraph small_net() {
  ToyGraph toy;
  register_all();
  const Output x = toy.conv_relu("conv1", toy.images());
  const Output sum = layers::add(toy.graph, "block/Add", toy.conv_bias("block/conv", x), x);
  const Output joined = layers::concat(toy.graph, "joined", {layers::relu(toy.graph, "block/Relu", sum), x});
  const Output flat = layers::reshape(toy.graph, "flat", joined, {.shape = {1, 64}});
  const Output logits =
      layers::bias_add(toy.graph, "fc/BiasAdd",
                       layers::matmul(toy.graph, "fc/MatMul", flat, layers::variable(toy.graph, "fc/weights", {64, 3})),
                       layers::variable(toy.graph, "fc/biases", {3}));
  layers::softmax_cross_entropy(toy.graph, logits, layers::placeholder(toy.graph, "labels", {1}, DType::kInt32));
  toy.graph.set_outputs({logits});
  return toy;
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RewriteOptions, RefusesWhatIsOutOfRange) {
  const auto message = [](const RewriteOptions& options) { return message_of([&] { options.check(); }); };
  EXPECT_TRUE(contains(message({.weight_bits = 1}), "weight_bits"));
  EXPECT_TRUE(contains(message({.weight_bits = 17}), "17"));
  EXPECT_TRUE(contains(message({.activation_bits = 1}), "activation_bits"));
  EXPECT_TRUE(contains(message({.activation_bits = -8}), "-8"));
  EXPECT_TRUE(contains(message({.quant_delay = -1}), "quant_delay"));
  EXPECT_TRUE(contains(message({.freeze_bn_delay = -1}), "freeze_bn_delay"));
  for (const double decay : {-0.1, 1.0, 1.5, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_TRUE(contains(message({.ema_decay = decay}), "ema_decay")) << decay;
  EXPECT_EQ(message({.weight_bits = 2, .activation_bits = 16, .ema_decay = 0}), "no error");
}

TEST(Rewrite, RefusedOptionsLeaveTheGraphAlone) {
  ToyGraph toy = small_net();
  const std::uint64_t revision = toy.graph.revision();
  EXPECT_THROW(create_training_graph(toy.graph, {.weight_bits = 1}), Error);
  EXPECT_THROW(create_eval_graph(toy.graph, {.activation_bits = 99}), Error);
  EXPECT_EQ(toy.graph.revision(), revision);
  Graph empty;
  EXPECT_THROW(create_training_graph(empty, {.weight_bits = 1}), Error) << "also where nothing is to be quantized";
}

TEST(Rewrite, OptionsReachEveryQuantizer) {
  ToyGraph toy = small_net();
  const RewriteReport report =
      create_training_graph(toy.graph, {.symmetric = true, .quant_delay = 7, .ema_decay = 0.9});
  EXPECT_EQ(report.inserted,
            (Names{"conv1/weights_quant", "conv1/act_quant", "block/conv/weights_quant", "block/conv/conv_quant",
                   "block/act_quant", "fc/weights_quant", "fc/act_quant", "joined/activation_Concat_quant"}));
  for (const std::string& name : report.inserted) {
    const FakeQuantAttributes attributes = toy.quantizer(name);
    EXPECT_TRUE(attributes.symmetric) << name;
    EXPECT_EQ(attributes.delay, 7) << name;
    EXPECT_EQ(attributes.ema_decay, 0.9) << name;
    EXPECT_TRUE(attributes.is_training) << name;
    EXPECT_FALSE(attributes.per_channel) << name;
  }
}

TEST(Rewrite, SymmetricWeightsLeaveActivationsAsTheyAre) {
  for (const auto rewrite : {create_training_graph, create_eval_graph}) {
    ToyGraph toy = small_net();
    const RewriteOptions options = {.symmetric_weights = true, .per_channel = true, .quantize_input = true};
    const RewriteReport first = rewrite(toy.graph, options);
    for (const std::string& name : first.inserted)
      EXPECT_EQ(toy.quantizer(name).symmetric, name.ends_with("weights_quant")) << name;
    EXPECT_FALSE(contains(first.text(), "symmetric")) << "what all weights have is no layer's own:\n" << first.text();
    const std::string once = graph_to_json(toy.graph);
    EXPECT_EQ(graph_to_json(graph_from_json(once)), once);
    EXPECT_TRUE(rewrite(toy.graph, options).inserted.empty());
    EXPECT_EQ(graph_to_json(toy.graph), once);
  }
}

TEST(Rewrite, SymmetricIncludesTheWeights) {
  ToyGraph both = small_net(), either = small_net();
  create_training_graph(both.graph, {.symmetric = true, .symmetric_weights = true});
  create_training_graph(either.graph, {.symmetric = true});
  EXPECT_EQ(graph_to_json(both.graph), graph_to_json(either.graph));
}

TEST(Rewrite, TwiceIsTheSameAsOnce) {
  for (const bool quantize_input : {false, true}) {
    ToyGraph toy = small_net();
    const RewriteOptions options = {.quantize_input = quantize_input};
    const RewriteReport first = create_training_graph(toy.graph, options);
    const std::string once = graph_to_json(toy.graph);
    const std::uint64_t revision = toy.graph.revision();
    const RewriteReport second = create_training_graph(toy.graph, options);
    EXPECT_EQ(graph_to_json(toy.graph), once);
    EXPECT_EQ(toy.graph.revision(), revision) << "compiled plans stay valid";
    EXPECT_FALSE(first.inserted.empty());
    EXPECT_TRUE(second.inserted.empty());
    ASSERT_EQ(second.matches.size(), first.matches.size());
    for (std::size_t i = 0; i < first.matches.size(); ++i) EXPECT_EQ(second.matches[i].text, first.matches[i].text);
  }
}

TEST(Rewrite, OtherBitsTheSecondTimeChangeNothing) {
  ToyGraph toy = small_net();
  create_training_graph(toy.graph, {.weight_bits = 4, .quant_delay = 5});
  const std::string once = graph_to_json(toy.graph);
  create_training_graph(toy.graph, {.weight_bits = 8, .symmetric = true, .per_channel = true});
  EXPECT_EQ(graph_to_json(toy.graph), once);
}

TEST(Rewrite, HandlesOfTheCallerSurvive) {
  ToyGraph toy = small_net();
  const Output relu = toy.graph.output_at("conv1/Relu");
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.graph.output_at("conv1/Relu"), relu);
  ASSERT_EQ(relu.node->uses().size(), 1u);
  EXPECT_EQ(relu.node->uses()[0].node->name(), "conv1/act_quant");
}

TEST(Rewrite, EvaluationNeitherObservesNorWaits) {
  ToyGraph direct = small_net();
  const RewriteReport report = create_eval_graph(direct.graph, {.weight_bits = 4, .quant_delay = 7});
  EXPECT_EQ(report.inserted.size(), 8u);
  for (const std::string& name : report.inserted) {
    EXPECT_FALSE(direct.quantizer(name).is_training) << name;
    EXPECT_EQ(direct.quantizer(name).delay, 0) << name;
  }
  ToyGraph converted = small_net();
  create_training_graph(converted.graph, {.weight_bits = 4, .quant_delay = 7});
  EXPECT_TRUE(create_eval_graph(converted.graph, {.weight_bits = 4}).inserted.empty());
  EXPECT_EQ(graph_to_json(converted.graph), graph_to_json(direct.graph));

  const std::uint64_t revision = converted.graph.revision();
  create_eval_graph(converted.graph);
  EXPECT_EQ(converted.graph.revision(), revision);
}

TEST(Rewrite, TakenNamesGetNumbers) {
  ToyGraph toy;
  toy.vector("a/weights_quant");
  toy.vector("a/act_quant/min");
  Output x = toy.conv_relu("a", toy.images());
  x = layers::conv2d(toy.graph, "a/second", x, toy.filter("a/second_weights"));
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"a/weights_quant_1", "a/act_quant_1", "a/weights_quant_2", "a/act_quant_2"}));
}

TEST(Rewrite, SharedWeightsAreQuantizedOnceForLayersOnly) {
  ToyGraph toy;
  const Output weights = toy.filter("weights");
  const Output x = toy.conv("a", toy.images(), weights);
  toy.conv("b", x, layers::identity(toy.graph, "read", weights));
  layers::square(toy.graph, "penalty", weights);
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant", "b/act_quant"}));
  EXPECT_EQ(toy.input("a/Conv2D", 1), "a/weights_quant");
  EXPECT_EQ(toy.input("b/Conv2D", 1), "a/weights_quant");
  EXPECT_EQ(toy.input("penalty"), "weights");
}

TEST(Rewrite, SharedWeightsWhereTheFirstLayerReadsACopy) {
  ToyGraph toy;
  const Output weights = toy.filter("weights");
  const Output x = toy.conv("a", toy.images(), layers::identity(toy.graph, "read", weights));
  toy.conv("b", x, weights);
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant", "b/act_quant"}));
  EXPECT_EQ(toy.input("b/Conv2D", 1), "a/weights_quant");
  EXPECT_TRUE(create_training_graph(toy.graph).inserted.empty());
}

TEST(Rewrite, ATensorThatFeedsAQuantizerGetsNoSecondOne) {
  ToyGraph toy;
  const Output x = toy.conv_relu("a", toy.images());
  const Output flat = layers::reshape(toy.graph, "flat", layers::identity(toy.graph, "copy", x), {.shape = {1, 32}});
  fake_quant(toy.graph, "mine", flat, {.bits = 3});
  EXPECT_EQ(create_training_graph(toy.graph, {.quantize_input = true}).inserted,
            (Names{"images/input_quant", "a/weights_quant"}));
}

TEST(Rewrite, NeitherDoWeightsOrInputs) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output weights = toy.filter("weights");
  fake_quant(toy.graph, "mine", layers::reshape(toy.graph, "flat_images", images, {.shape = {32}}), {});
  fake_quant(toy.graph, "mine_too", layers::reshape(toy.graph, "flat_weights", weights, {.shape = {4}}), {});
  toy.conv("a", images, weights);
  EXPECT_EQ(create_training_graph(toy.graph, {.quantize_input = true}).inserted, (Names{"a/act_quant"}));
}

TEST(Rewrite, ScopeLimitsLayersAndActivations) {
  ToyGraph toy;
  const Output shared = toy.filter("shared");
  Output x = layers::relu(toy.graph, "net/a/Relu", toy.conv("net/a", toy.images(), shared));
  x = layers::relu(toy.graph, "net/ab/Relu", toy.conv("net/ab", x, shared));
  layers::relu(toy.graph, "elsewhere/Relu", toy.conv_bias("net/a/deep", x));
  Graph twin = toy.graph.clone();
  EXPECT_EQ(create_training_graph(toy.graph, {.scope = "net/a"}).inserted,
            (Names{"net/a/weights_quant", "net/a/act_quant", "net/a/deep/weights_quant"}));
  EXPECT_EQ(create_training_graph(twin, {.scope = "net/a/"}).inserted.size(), 3u) << "a '/' at the end does not matter";
  EXPECT_EQ(toy.input("net/a/Conv2D", 1), "net/a/weights_quant");
  EXPECT_EQ(toy.input("net/ab/Conv2D", 1), "shared");

  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"net/ab/act_quant", "net/a/deep/act_quant"}));
  EXPECT_EQ(toy.input("net/ab/Conv2D", 1), "net/a/weights_quant") << "the quantizer is there already";
}

TEST(Rewrite, UnknownScopeIsNoted) {
  ToyGraph toy = small_net();
  const RewriteReport report = create_training_graph(toy.graph, {.scope = "conv"});
  EXPECT_TRUE(report.inserted.empty());
  EXPECT_TRUE(contains(report.text(), "note: no layer is in scope \"conv\""));
}

TEST(Rewrite, PerChannelWeights) {
  ToyGraph toy;
  Output x = toy.conv("a", toy.images());
  x = layers::depthwise_conv2d(toy.graph, "b/DepthwiseConv2d", x,
                               layers::variable(toy.graph, "b/weights", {1, 1, 2, 3}));
  x = layers::reshape(toy.graph, "flat", x, {.shape = {1, 96}});
  x = layers::matmul(toy.graph, "c/MatMul", x, layers::variable(toy.graph, "c/weights", {96, 4}));
  x = layers::matmul(toy.graph, "d/MatMul", x, layers::variable(toy.graph, "d/weights", {5, 4}), {.transpose_b = true});
  layers::matmul(toy.graph, "e/MatMul", layers::variable(toy.graph, "e/weights", {3, 1}), x);
  const RewriteReport report = create_training_graph(toy.graph, {.per_channel = true});
  const auto range_shape = [&](const std::string& scope) {
    return toy.graph.output_at(scope + "/weights_quant/min").shape();
  };
  EXPECT_EQ(range_shape("a"), (Shape{2}));
  EXPECT_EQ(range_shape("b"), (Shape{2, 3}));
  EXPECT_EQ(range_shape("c"), (Shape{4}));
  EXPECT_EQ(range_shape("d"), Shape{});
  EXPECT_EQ(range_shape("e"), Shape{});
  EXPECT_TRUE(toy.quantizer("a/weights_quant").per_channel);
  EXPECT_FALSE(toy.quantizer("d/weights_quant").per_channel);
  EXPECT_FALSE(toy.quantizer("a/act_quant").per_channel);
  ASSERT_EQ(report.matches.size(), 5u);
  EXPECT_FALSE(contains(report.matches[2].text, "per tensor"));
  EXPECT_TRUE(contains(report.matches[3].text, "per tensor: the last axis is not the output channel"));
}

TEST(Rewrite, PerChannelNeedsAllUsersOfAWeightToAgree) {
  ToyGraph toy;
  const Output tied = layers::variable(toy.graph, "tied", {2, 3});
  const Output x = layers::matmul(toy.graph, "a/MatMul", layers::placeholder(toy.graph, "x", {1, 2}), tied);
  layers::matmul(toy.graph, "b/MatMul", x, tied, {.transpose_b = true});
  create_training_graph(toy.graph, {.per_channel = true});
  EXPECT_FALSE(toy.quantizer("a/weights_quant").per_channel);
}

TEST(Rewrite, QuantizeInput) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output other = toy.images("other");
  const Output padded = layers::pad(toy.graph, "pad", images, {.paddings = {{0, 0}, {1, 1}, {1, 1}, {0, 0}}});
  toy.conv("a", padded);
  layers::relu(toy.graph, "unrelated", other);
  EXPECT_EQ(create_training_graph(toy.graph, {.activation_bits = 6, .quantize_input = true}).inserted,
            (Names{"images/input_quant", "a/weights_quant", "a/act_quant"}));
  EXPECT_EQ(toy.input("pad"), "images/input_quant");
  EXPECT_EQ(toy.quantizer("images/input_quant").bits, 6);
  EXPECT_EQ(toy.quantizer("images/input_quant").range, RangeKind::kMovingAverage);
  EXPECT_EQ(toy.initial("images/input_quant/min"), -6);
}

TEST(RewriteStrict, AcceptsAFullyQuantizedGraph) {
  ToyGraph toy = small_net();
  EXPECT_NO_THROW(create_training_graph(toy.graph, {.strict = true}));
}

TEST(RewriteStrict, NamesEveryFloatEdgeIntoALayerAndChangesNothing) {
  register_all();
  ToyGraph toy;
  const Output x = toy.conv("a", toy.images(), layers::constant(toy.graph, "a/fixed", {1, 1, 2, 2}, {1}));
  const Output soft = layers::softmax(toy.graph, "softmax", toy.conv("b", layers::relu(toy.graph, "relu", x)));
  toy.conv("c", soft, layers::constant(toy.graph, "c/fixed", {1, 1, 2, 2}, {1}));
  const std::string before = graph_to_json(toy.graph);
  const std::uint64_t revision = toy.graph.revision();
  const std::string message = message_of([&] { create_training_graph(toy.graph, {.strict = true}); });
  EXPECT_TRUE(contains(message, "a/fixed -> a/Conv2D (its weights come from [Constant \"a/fixed\"]")) << message;
  EXPECT_TRUE(contains(message, "relu -> b/Conv2D (none of its inputs is quantized)")) << message;
  EXPECT_TRUE(contains(message, "softmax -> c/Conv2D (Softmax")) << message;
  EXPECT_TRUE(contains(message, "c/fixed -> c/Conv2D (its weights come from [Constant \"c/fixed\"]")) << message;
  EXPECT_FALSE(contains(message, "images")) << "inputs bring their range along: " << message;
  EXPECT_FALSE(contains(message, "b/weights")) << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 0);
  EXPECT_EQ(graph_to_json(toy.graph), before);
  EXPECT_EQ(toy.graph.revision(), revision);
}

TEST(RewriteStrict, LooksOnlyIntoTheScope) {
  ToyGraph toy;
  layers::softmax(toy.graph, "softmax", toy.conv_relu("a", toy.images()));
  toy.conv("b", toy.graph.output_at("softmax"));
  EXPECT_NO_THROW(create_training_graph(toy.graph, {.scope = "a", .strict = true}));
  EXPECT_THROW(create_training_graph(toy.graph, {.scope = "b", .strict = true}), Error);
}

TEST(RewriteStrict, AMatchedLayerNeedsAQuantizedOutput) {
  ToyGraph toy;
  layers::relu(toy.graph, "elsewhere/Relu", toy.conv_bias("a", toy.images()));
  const std::string message = message_of([&] { create_training_graph(toy.graph, {.scope = "a", .strict = true}); });
  EXPECT_TRUE(contains(message, "elsewhere/Relu, the output of a/Conv2D (outside the scope)")) << message;
}

TEST(Rewrite, FreezingReachesBatchNormsThatAreNotFoldedToo) {
  ToyGraph plain = small_net();
  EXPECT_TRUE(contains(create_training_graph(plain.graph, {.freeze_bn_delay = 3}).text(), "no batch norm trains here"));
  ToyGraph normed;
  normed.batch_norm("a", normed.conv("a", normed.images()));
  EXPECT_FALSE(contains(create_training_graph(normed.graph, {.freeze_bn_delay = 3}).text(), "freeze_bn_delay"));
  EXPECT_EQ(freeze_delay_of(normed.graph.at("a/BatchNorm")), 3);
}

TEST(Rewrite, NamesDoNotMatter) {
  ToyGraph toy;
  const Output x = layers::conv2d(toy.graph, "weights_quant/FakeQuant", toy.images(), toy.filter("BiasAdd"));
  layers::relu(toy.graph, "Conv2D", layers::bias_add(toy.graph, "Relu", x, toy.vector("BatchNorm")));
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"weights_quant/weights_quant", "weights_quant/act_quant"}));
  EXPECT_EQ(toy.input("weights_quant/act_quant"), "Conv2D");
}

TEST(Rewrite, OddGraphsAreRewrittenOrLeftButNeverBreak) {
  {
    ToyGraph toy;
    const Output x = toy.conv("a", toy.images());
    layers::add(toy.graph, "a/Add", x, x);
    EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/conv_quant", "add_quant"}));
    EXPECT_EQ(toy.input("a/Add", 0), "a/conv_quant");
    EXPECT_EQ(toy.input("a/Add", 1), "a/conv_quant");
  }
  {
    ToyGraph toy;
    const Output x = toy.conv_bias("a", toy.images());
    layers::relu(toy.graph, "one", x);
    layers::relu6(toy.graph, "two", x);
    EXPECT_EQ(create_training_graph(toy.graph).inserted,
              (Names{"a/weights_quant", "a/act_quant", "one/activation_Relu_quant", "two/activation_Relu6_quant"}));
    EXPECT_EQ(toy.input("a/act_quant"), "a/BiasAdd");
  }
  {
    ToyGraph toy;
    const Output square = layers::variable(toy.graph, "square", {2, 2});
    layers::matmul(toy.graph, "MatMul", square, square);
    EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"weights_quant", "act_quant"}));
    EXPECT_EQ(toy.input("MatMul", 0), "square");
    EXPECT_EQ(toy.input("MatMul", 1), "weights_quant");
  }
  Graph empty;
  EXPECT_TRUE(create_training_graph(empty).inserted.empty());
}

TEST(Rewrite, GraphFromJsonInAnyOrder) {
  register_all();
  Graph graph = graph_from_json(R"({"format": "miniqat.graph", "version": 1, "nodes": [
    {"name": "test/Relu6", "op": "Relu6", "inputs": ["test/BiasAdd"]},
    {"name": "test/BiasAdd", "op": "BiasAdd", "inputs": ["test/Conv2D", "test/biases"]},
    {"name": "test/Conv2D", "op": "Conv2D", "inputs": ["inputs", "test/weights"], "attrs": {"strides": [2, 2]}},
    {"name": "test/biases", "op": "Variable", "attrs": {"shape": [8]}},
    {"name": "test/weights", "op": "Variable", "attrs": {"shape": [5, 5, 3, 8]}},
    {"name": "inputs", "op": "Placeholder", "attrs": {"shape": [1, 16, 16, 3]}}],
   "outputs": ["test/Relu6"]})");
  EXPECT_EQ(create_training_graph(graph).inserted, (Names{"test/weights_quant", "test/act_quant"}));
  EXPECT_EQ(graph.outputs().front().name(), "test/act_quant");
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_test
