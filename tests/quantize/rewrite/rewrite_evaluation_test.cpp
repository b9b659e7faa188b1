// An evaluation graph has the same quantizers whether it is made of the original or of the training graph: only then do
// the ranges that training has observed fit it.
#include <gtest/gtest.h>

#include <set>

#include "core/graph/graph_json.h"
#include "tests/errors.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::rewrite_evaluation_test {
namespace {

using testing::ToyGraph;

std::set<std::string> quantizers(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    if (node->type() == "FakeQuant") names.insert(node->name());
  return names;
}

/// In both folding modes: the training graph's quantizers, those of its evaluation graph, and the original's.
void expect_same_quantizers(const Graph& original, RewriteOptions options = {}) {
  for (const BnFold bn_fold : {BnFold::kTf, BnFold::kSingle}) {
    options.bn_fold = bn_fold;
    Graph training = original.clone();
    create_training_graph(training, options);
    const std::set<std::string> trained = quantizers(training);
    EXPECT_FALSE(trained.empty());
    create_eval_graph(training, options);
    EXPECT_EQ(quantizers(training), trained);
    Graph evaluation = original.clone();
    create_eval_graph(evaluation, options);
    EXPECT_EQ(quantizers(evaluation), trained);
    EXPECT_TRUE(create_eval_graph(evaluation, options).inserted.empty());
  }
}

TEST(RewriteEvaluation, BatchNormsThatShareMovingStatisticsAreNotFoldedEither) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output first = toy.batch_norm("a", toy.conv("a", images));
  const auto norm = first.node->inputs();
  const Output second = layers::batch_norm(toy.graph, "b/BatchNorm", toy.conv("b", images), norm[1], norm[2], norm[3],
                                           norm[4], {.is_training = false});
  toy.graph.set_outputs({toy.conv_relu("c", layers::add(toy.graph, "sum", first, second))});
  expect_same_quantizers(toy.graph);
}

TEST(RewriteEvaluation, ScopeIsThatOfTheLayerNotOfItsBatchNorm) {
  ToyGraph toy;
  toy.graph.set_outputs({layers::softmax(toy.graph, "y", toy.batch_norm("norms", toy.conv("net", toy.images())))});
  expect_same_quantizers(toy.graph, {.scope = "net"});
}

TEST(RewriteEvaluation, BatchNormBehindTwoReshapesIsNotFolded) {
  ToyGraph toy;
  Output x = toy.conv("a", toy.images());
  for (const char* name : {"once", "twice"}) x = layers::reshape(toy.graph, name, x, {.shape = {1, 16, 1, 2}});
  toy.graph.set_outputs({toy.conv_relu("b", toy.batch_norm("a", x))});
  expect_same_quantizers(toy.graph);
}

TEST(RewriteEvaluation, FirstOfTwoLayersThatShareABypassNamesTheQuantizer) {
  for (const bool swapped : {false, true}) {
    ToyGraph toy;
    const Output images = toy.images();
    Output a = toy.batch_norm("one/a", toy.conv("one/a", images));
    Output b = toy.batch_norm("two/b", toy.conv("two/b", images));
    if (swapped) std::swap(a, b);
    // A reader that comes before the sum makes one of them first.
    toy.graph.set_outputs(
        {layers::softmax(toy.graph, "early", a), layers::relu(toy.graph, "Relu", layers::add(toy.graph, "sum", b, a))});
    expect_same_quantizers(toy.graph);
  }
}

TEST(RewriteEvaluation, TurnsBatchNormsToo) {
  ToyGraph toy;
  toy.batch_norm("a", toy.conv("a", toy.images()));
  create_training_graph(toy.graph);
  EXPECT_TRUE(toy.graph.at("a/BatchNorm").as<layers::BatchNorm>()->is_training);
  create_eval_graph(toy.graph);
  EXPECT_FALSE(toy.graph.at("a/BatchNorm").as<layers::BatchNorm>()->is_training);
}

// Its quantizers would never observe, and its corrections are gone.
TEST(RewriteEvaluation, DoesNotBecomeTrainingAgain) {
  layers::register_ops();
  quantize::register_ops();
  ToyGraph toy;
  toy.conv_relu("b", toy.conv_relu("a", toy.images()));
  create_eval_graph(toy.graph, {.scope = "b"});
  const std::string before = graph_to_json(toy.graph);
  const std::string first = "[FakeQuant \"b/weights_quant\"] was rewritten for evaluation";
  EXPECT_TRUE(testing::error_of([&] { create_training_graph(toy.graph); }).starts_with(first));
  EXPECT_TRUE(testing::error_of([&] { require_observing(toy.graph, "b.json"); }).starts_with("b.json: " + first));
  EXPECT_EQ(graph_to_json(toy.graph), before);
}

TEST(RewriteEvaluation, AFixedRangeTrainsEitherWay) {
  ToyGraph toy;
  const Output range = layers::constant(toy.graph, "range", {}, {4});
  const auto still = FakeQuant::make({.range = RangeKind::kFixed, .is_training = false});
  toy.conv("a", toy.graph.add("still", still, {toy.images(), range, range}).output());
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (testing::Names{"a/weights_quant", "a/act_quant"}));
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_evaluation_test
