// Edges at which an integer engine would stumble, beside those that lead into layers.
#include <gtest/gtest.h>

#include <string>

#include "core/text/error.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/fold/primitive_batch_norm.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::rewrite_edges_test {
namespace {

using testing::Names;
using testing::PrimitiveOps;
using testing::Statistics;
using testing::ToyGraph;

/// What strict says; empty when it accepts.
std::string refusal(const Graph& graph, RewriteOptions options = {}) {
  Graph copy = graph.clone();
  options.strict = true;
  try {
    create_training_graph(copy, options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A layer and a batch norm in primitive ops that cannot be folded because its input is a graph output.
PrimitiveOps unfoldable(Statistics statistics) {
  PrimitiveOps ops;
  ops.form.statistics = statistics;
  const Output filter = layers::variable(ops.graph, "conv/weights", {1, 1, testing::kChannels, testing::kChannels});
  const Output conv = layers::conv2d(ops.graph, "conv/Conv2D", ops.images(), filter);
  ops.graph.set_outputs({layers::relu(ops.graph, "Relu", ops.batch_norm(conv)), conv});
  return ops;
}

constexpr Statistics kAllStatistics[] = {Statistics::kStored,   Statistics::kSquare,    Statistics::kProduct,
                                         Statistics::kBackward, Statistics::kOfSquares, Statistics::kOfProducts,
                                         Statistics::kKeptDims};

TEST(RewriteEdges, StatisticsInPrimitiveOpsAreNeverQuantized) {
  for (const Statistics statistics : kAllStatistics) {
    PrimitiveOps ops = unfoldable(statistics);
    EXPECT_EQ(refusal(ops.graph), "");
    const RewriteReport report = create_training_graph(ops.graph);
    EXPECT_EQ(report.inserted, (Names{"conv/weights_quant", "conv/act_quant", "Relu/activation_Relu_quant"}));
    ASSERT_EQ(report.batch_norms.size(), 1u);
    EXPECT_FALSE(report.batch_norms[0].folded);
    EXPECT_EQ(report.batch_norms[0].fresh_statistics, statistics != Statistics::kStored);
    EXPECT_EQ(ops.graph.at("bn/BatchNorm").input(0).name(), "conv/act_quant");
  }
}

/// The same after a quantized activation, which the ops inside would otherwise pass on. Out of scope they stay ops.
TEST(RewriteEdges, StatisticsInPrimitiveOpsBehindAQuantizerAreNeverQuantized) {
  for (const Statistics statistics : kAllStatistics)
    for (const bool in_scope : {true, false}) {
      PrimitiveOps ops{.form = {.statistics = statistics}};
      const Output filter = layers::variable(ops.graph, "conv/weights", {1, 1, testing::kChannels, testing::kChannels});
      const Output conv = layers::conv2d(ops.graph, "conv/Conv2D", ops.images(), filter);
      ops.graph.set_outputs({ops.batch_norm(layers::relu(ops.graph, "conv/Relu", conv))});
      Names expected = {"conv/weights_quant", "conv/act_quant"};
      if (in_scope) expected.emplace_back("bn/BatchNorm/activation_BatchNorm_quant");
      EXPECT_EQ(create_training_graph(ops.graph, {.scope = in_scope ? "" : "conv"}).inserted, expected);
      EXPECT_EQ(ops.graph.find("bn/BatchNorm") != nullptr, in_scope);
    }
}

TEST(RewriteEdges, FreshMovingStatisticsAreAWarning) {
  for (const bool training : {true, false}) {
    PrimitiveOps ops;
    const Output filter = layers::variable(ops.graph, "conv/weights", {1, 1, testing::kChannels, testing::kChannels});
    ops.graph.set_outputs({ops.batch_norm(layers::conv2d(ops.graph, "conv/Conv2D", ops.images(), filter))});
    const auto rewrite = training ? create_training_graph : create_eval_graph;
    const RewriteReport report = rewrite(ops.graph, {});
    ASSERT_EQ(report.warnings.size(), 1u);
    EXPECT_TRUE(contains(report.warnings[0], "1 batch norm in primitive ops had no moving statistics"));
    EXPECT_TRUE(rewrite(ops.graph, {}).warnings.empty()) << "once is enough";
  }
}

TEST(RewriteEdges, StrictRefusesAFloatOperandOfABypass) {
  ToyGraph toy;
  const Output a = toy.conv_bias("a", toy.images());
  layers::add(toy.graph, "Add", layers::relu(toy.graph, "a/Relu", a), layers::square(toy.graph, "square", a));
  EXPECT_TRUE(contains(refusal(toy.graph), "square -> Add")) << refusal(toy.graph);
}

TEST(RewriteEdges, StrictRefusesAFloatOperandOfWhatIsRequantized) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  layers::concat(toy.graph, "joined", {a, layers::softmax(toy.graph, "soft", a)}, {.axis = 3});
  EXPECT_TRUE(contains(refusal(toy.graph), "soft -> joined")) << refusal(toy.graph);
}

TEST(RewriteEdges, StrictAcceptsParametersAsOperands) {
  ToyGraph toy;
  layers::mul(toy.graph, "scaled", toy.conv_relu("a", toy.images()), layers::constant(toy.graph, "two", {}, {2}));
  EXPECT_EQ(refusal(toy.graph), "");
}

TEST(RewriteEdges, InputsAreQuantizedThroughOpsThatMakeRangesOfTheirOwn) {
  ToyGraph toy;
  const Output pool = layers::avg_pool(toy.graph, "pool", toy.images(), {.window = {1, 1}, .strides = {1, 1}});
  toy.conv_bias("a", layers::add(toy.graph, "sum",
                                 layers::max_pool(toy.graph, "max", pool, {.window = {1, 1}, .strides = {1, 1}}),
                                 toy.images("others")));
  EXPECT_TRUE(contains(refusal(toy.graph), "sum -> a/Conv2D"));
  EXPECT_EQ(refusal(toy.graph, {.quantize_input = true}), "");
  create_training_graph(toy.graph, {.quantize_input = true});
  EXPECT_EQ(toy.input("pool"), "images/input_quant");
  EXPECT_EQ(toy.input("sum", 1), "others/input_quant");
  EXPECT_EQ(toy.input("max"), "pool/activation_AvgPool_quant");
  EXPECT_EQ(toy.input("a/Conv2D"), "sum/activation_Add_quant");
}

TEST(RewriteEdges, OutputsInTheMiddleMoveWithTheirTensor) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  const Output weights = toy.graph.output_at("a/weights");
  toy.graph.set_outputs({a, toy.conv_bias("b", a), weights});
  create_training_graph(toy.graph);
  Names outputs;
  for (const Output& output : toy.graph.outputs()) outputs.push_back(output.name());
  EXPECT_EQ(outputs, (Names{"a/act_quant", "b/act_quant", "a/weights"}));
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_edges_test
