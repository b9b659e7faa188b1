#include "quantize/rewrite/rewrite.h"

#include "core/graph/graph_json.h"
#include "core/graph/op_queries.h"
#include "core/text/error.h"
#include "quantize/quantizers.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/fold/primitive_batch_norm.h"
#include "tests/quantize/rewrite/rewrite_case.h"

namespace miniqat::quantize::rewrite_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::Names;
using testing::PrimitiveOps;
using testing::Statistics;
using testing::strict_refusal;
using testing::ToyGraph;

TEST(Rewrite, HandlesOfTheCallerSurvive) {
  ToyGraph toy("images | conv_relu a | MaxPool pool");
  const Output relu = toy.graph.output_at("a/Relu");
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.graph.output_at("a/Relu"), relu);
  ASSERT_EQ(relu.node->uses().size(), 1u);
  EXPECT_EQ(relu.node->uses()[0].node->name(), "a/act_quant");
}

TEST(Rewrite, WithoutAScopeItGoesOnWhereItWasLimited) {
  ToyGraph toy("[1,1,2,2]shared; images | conv a shared | Relu a/Relu | conv b shared | Relu b/Relu");
  create_training_graph(toy.graph, {.scope = "a"});
  EXPECT_EQ(toy.input("b/Conv2D", 1), "shared");
  EXPECT_EQ(create_training_graph(toy.graph).inserted, Names{"b/act_quant"});
  EXPECT_EQ(toy.input("b/Conv2D", 1), "a/weights_quant") << "the quantizer is there already";
}

TEST(Rewrite, FreezingReachesBatchNormsThatAreNotFoldedToo) {
  ToyGraph toy("images | conv a | batch_norm a");
  EXPECT_EQ(create_training_graph(toy.graph, {.freeze_bn_delay = 3}).text().find("freeze_bn_delay"), std::string::npos);
  EXPECT_EQ(freeze_delay_of(toy.graph.at("a/BatchNorm")), 3);
}

TEST(Rewrite, GraphFromJsonInAnyOrder) {
  layers::register_ops();
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

// A walk that recursed would overflow the stack here.
TEST(Rewrite, ATargetIsFoundBehindAChainOfAnyLength) {
  const std::uint64_t length = testing::fewer(200'000);
  for (const bool is_target : {true, false}) {
    ToyGraph toy("images | conv a");
    Output x = toy.graph.output_at("images");
    for (std::uint64_t i = 0; i < length; ++i) x = layers::softmax(toy.graph, concat("link", i), x);
    x = layers::reshape(toy.graph, "target", x, {.shape = {1, 4, 4, 2}});
    if (is_target) layers::mean_squared_error(toy.graph, toy.graph.output_at("a/Conv2D"), x);
    EXPECT_EQ(create_training_graph(toy.graph, {.quantize_input = true}).inserted,
              (Names{"images/input_quant", "a/weights_quant", "a/act_quant"}));
    EXPECT_EQ(toy.input("a/Conv2D"), "images/input_quant");
    EXPECT_EQ(toy.input("link0"), is_target ? "images" : "images/input_quant");
  }
}

/// What strict says of graphs, or "" where it accepts them.
TEST(RewriteStrict, NamesEveryFloatEdge) {
  const auto refusal = [](const std::string& chains, const RewriteOptions& options = {}) {
    return strict_refusal(ToyGraph(chains).graph, options);
  };
  EXPECT_EQ(refusal("images | conv a | Softmax softmax | conv b"),
            "`strict`: left float: softmax -> b/Conv2D (Softmax outside of any match stays float)");
  // Inputs bring their range along.
  EXPECT_EQ(
      refusal("images | conv a =[1,1,2,2]a/fixed | Relu relu | conv b | Softmax softmax | conv c =[1,1,2,2]c/fixed"),
      "`strict`: left float: a/fixed -> a/Conv2D (its weights come from [Constant \"a/fixed\"], not from a "
      "Variable); relu -> b/Conv2D (none of its inputs is quantized); softmax -> c/Conv2D (Softmax outside of any "
      "match stays float); c/fixed -> c/Conv2D (its weights come from [Constant \"c/fixed\"], not from a Variable)");
  const std::string across = "images | conv_relu a | Softmax softmax | conv b";
  EXPECT_EQ(refusal(across, {.scope = "a"}), "") << "it looks only into the scope";
  EXPECT_NE(refusal(across, {.scope = "b"}), "");
  EXPECT_EQ(refusal("images | conv_bias a | Relu elsewhere/Relu", {.scope = "a"}),
            "`strict`: left float: elsewhere/Relu, the output of a/Conv2D (outside the scope)");
  EXPECT_NE(
      refusal("images | conv_bias a | Square square; a/BiasAdd | Relu a/Relu | Add Add square").find("square -> Add"),
      std::string::npos);
  EXPECT_NE(refusal("images | conv_relu a | Softmax soft; a/Relu | Concat joined soft").find("soft -> joined"),
            std::string::npos);
  EXPECT_EQ(refusal("images | conv_relu a | Mul scaled =[]two"), "") << "parameters are operands";
  const std::string before_layers = "images | AvgPool pool 1 | MaxPool max 1 | Add sum others | conv_bias a";
  EXPECT_NE(refusal(before_layers).find("sum -> a/Conv2D"), std::string::npos);
  EXPECT_EQ(refusal(before_layers, {.quantize_input = true}), "");
}

/// images -> convolution, in the scope "conv".
Output convolution(PrimitiveOps& ops) {
  const Output filter = layers::variable(ops.graph, "conv/weights", {1, 1, testing::kChannels, testing::kChannels});
  return layers::conv2d(ops.graph, "conv/Conv2D", ops.images(), filter);
}

constexpr Statistics kAllStatistics[] = {Statistics::kStored,   Statistics::kSquare,    Statistics::kProduct,
                                         Statistics::kBackward, Statistics::kOfSquares, Statistics::kOfProducts,
                                         Statistics::kKeptDims};

/// Of a batch norm that cannot be folded because its input is a graph output.
TEST(RewriteBatchNorms, StatisticsInPrimitiveOpsAreNeverQuantized) {
  for (const Statistics statistics : kAllStatistics) {
    PrimitiveOps ops{.form = {.statistics = statistics}};
    const Output conv = convolution(ops);
    ops.graph.set_outputs({layers::relu(ops.graph, "Relu", ops.batch_norm(conv)), conv});
    EXPECT_EQ(strict_refusal(ops.graph), "");
    const RewriteReport report = create_training_graph(ops.graph);
    EXPECT_EQ(report.inserted, (Names{"conv/weights_quant", "conv/act_quant", "Relu/activation_Relu_quant"}));
    ASSERT_EQ(report.batch_norms.size(), 1u);
    EXPECT_FALSE(report.batch_norms[0].folded);
    EXPECT_EQ(report.batch_norms[0].fresh_statistics, statistics != Statistics::kStored);
    EXPECT_EQ(ops.graph.at("bn/BatchNorm").input(0).name(), "conv/act_quant");
  }
}

/// The same after a quantized activation, which the ops inside would otherwise pass on. Out of scope they stay ops.
TEST(RewriteBatchNorms, StatisticsInPrimitiveOpsBehindAQuantizerAreNeverQuantized) {
  for (const Statistics statistics : kAllStatistics)
    for (const bool in_scope : {true, false}) {
      PrimitiveOps ops{.form = {.statistics = statistics}};
      ops.graph.set_outputs({ops.batch_norm(layers::relu(ops.graph, "conv/Relu", convolution(ops)))});
      Names expected = {"conv/weights_quant", "conv/act_quant"};
      if (in_scope) expected.emplace_back("bn/BatchNorm/activation_BatchNorm_quant");
      EXPECT_EQ(create_training_graph(ops.graph, {.scope = in_scope ? "" : "conv"}).inserted, expected);
      EXPECT_EQ(ops.graph.find("bn/BatchNorm") != nullptr, in_scope);
    }
}

TEST(RewriteBatchNorms, FreshMovingStatisticsAreAWarning) {
  for (const auto rewrite : {create_training_graph, create_eval_graph}) {
    PrimitiveOps ops;
    ops.graph.set_outputs({ops.batch_norm(convolution(ops))});
    const RewriteReport report = rewrite(ops.graph, {});
    ASSERT_EQ(report.warnings.size(), 1u);
    EXPECT_TRUE(mentions(report.warnings[0], {"1 batch norm in primitive ops had no moving statistics"}));
    EXPECT_TRUE(rewrite(ops.graph, {}).warnings.empty()) << "once is enough";
  }
}

/// An evaluation graph has the same quantizers whether it is made of the original or of the training graph, in both
/// folding modes: only then do the ranges that training has observed fit it. (Rows of tables are tried, too.)
void expect_same_evaluation(const Graph& original, RewriteOptions options = {}) {
  for (const BnFold bn_fold : {BnFold::kTf, BnFold::kSingle}) {
    options.bn_fold = bn_fold;
    Graph training = original.clone(), evaluation = original.clone();
    EXPECT_FALSE(create_training_graph(training, options).inserted.empty());
    EXPECT_EQ(create_eval_graph(training, options).inserted, Names{});
    create_eval_graph(evaluation, options);
    EXPECT_EQ(graph_to_json(training), graph_to_json(evaluation));
    EXPECT_EQ(create_eval_graph(evaluation, options).inserted, Names{});
  }
}

TEST(RewriteEvaluation, BatchNormsThatShareMovingStatisticsAreNotFoldedEither) {
  ToyGraph toy("images | conv b");
  const Output first = toy.batch_norm("a", toy.conv("a", toy.graph.output_at("images")));
  const auto norm = first.node->inputs();
  const Output second = layers::batch_norm(toy.graph, "b/BatchNorm", toy.graph.output_at("b/Conv2D"), norm[1], norm[2],
                                           norm[3], norm[4], {.is_training = false});
  toy.graph.set_outputs({toy.conv_relu("c", layers::add(toy.graph, "sum", first, second))});
  expect_same_evaluation(toy.graph);
}

TEST(RewriteEvaluation, HasTheSameQuantizers) {
  const auto expect_of = [](const std::string& chains, const RewriteOptions& options = {}) {
    SCOPED_TRACE(chains);
    expect_same_evaluation(ToyGraph(chains).graph, options);
  };
  // The scope is that of the layer, not of its batch norm.
  expect_of("images | conv net | batch_norm norms | Softmax y | output", {.scope = "net"});
  // A batch norm behind two reshapes is not folded.
  expect_of("images | conv a | Reshape once 1 16 1 2 | Reshape twice 1 16 1 2 | batch_norm a | conv_relu b | output");
  // The first of two layers that share a bypass names the quantizer; a reader before the sum makes one of them first.
  const std::string layers = "images | conv one/a | batch_norm one/a; images | conv two/b | batch_norm two/b;";
  expect_of(layers +
            "one/a/BatchNorm | Softmax early | output; two/b/BatchNorm | Add sum one/a/BatchNorm | Relu Relu | "
            "output");
  expect_of(layers +
            "two/b/BatchNorm | Softmax early | output; one/a/BatchNorm | Add sum two/b/BatchNorm | Relu Relu | "
            "output");
}

TEST(RewriteEvaluation, TurnsBatchNormsToo) {
  ToyGraph toy("images | conv a | batch_norm a");
  create_training_graph(toy.graph);
  EXPECT_TRUE(toy.graph.at("a/BatchNorm").as<layers::BatchNorm>()->is_training);
  create_eval_graph(toy.graph);
  EXPECT_FALSE(toy.graph.at("a/BatchNorm").as<layers::BatchNorm>()->is_training);
}

TEST(RewriteEvaluation, NeitherObservesNorWaits) {
  ToyGraph toy("images | conv_relu a");
  create_training_graph(toy.graph, {.quant_delay = 7});
  const std::uint64_t training = toy.graph.revision();
  create_eval_graph(toy.graph);
  const Names expected = {"a/weights_quant: evaluating delay=0", "a/act_quant: evaluating delay=0"};
  EXPECT_EQ(testing::described(toy.graph, expected), expected);
  const std::uint64_t revision = toy.graph.revision();
  create_eval_graph(toy.graph);
  EXPECT_EQ(toy.graph.revision(), revision);
  EXPECT_NE(revision, training);
}

// Its quantizers would never observe, and its corrections are gone.
TEST(RewriteEvaluation, DoesNotBecomeTrainingAgain) {
  ToyGraph toy("images | conv_relu a | conv_relu b");
  create_eval_graph(toy.graph, {.scope = "b"});
  const std::string before = graph_to_json(toy.graph);
  const std::string first = "[FakeQuant \"b/weights_quant\"] was rewritten for evaluation";
  EXPECT_TRUE(error_of([&] { create_training_graph(toy.graph); }).starts_with(first));
  EXPECT_TRUE(error_of([&] { require_observing(toy.graph, "b.json"); }).starts_with("b.json: " + first));
  EXPECT_EQ(graph_to_json(toy.graph), before);
}

TEST(RewriteEvaluation, AFixedRangeTrainsEitherWay) {
  ToyGraph toy;
  const Output range = layers::constant(toy.graph, "range", {}, {4});
  const auto still = FakeQuant::make({.range = RangeKind::kFixed, .is_training = false});
  toy.conv("a", toy.graph.add("still", still, {toy.images(), range, range}).output());
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant"}));
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_test
