// What must hold of a rewritten graph whatever the graph was. What it computes is for rewrite_random_values_test.cpp.
#include <algorithm>
#include <set>

#include "core/graph/reach.h"
#include "core/graph/registry.h"
#include "layers/layers.h"
#include "quantize/op_roles.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/decide.h"
#include "quantize/rewrite/layer_patterns.h"
#include "tests/quantize/rewrite/random_rewrite.h"

namespace miniqat::quantize::rewrite_random_test {
namespace {

using testing::for_random_nets;
using testing::random_net;
using testing::well_formed_net;

/// The graph in JSON, once it was written and read back.
std::string round_trip(const Graph& graph) {
  graph.verify();
  const std::string text = graph_to_json(graph);
  const Graph again = graph_from_json(text);
  again.verify();
  EXPECT_EQ(graph_to_json(again), text);
  return text;
}

bool is_quantized(Output weights) {
  while (weights.node->type() == "Identity") weights = weights.node->input(0);
  return weights.node->type() == "FakeQuant";
}

/// Every layer is matched, with weights and output quantized, or skipped with a reason.
void expect_all_layers_seen(const Graph& graph, const RewriteOptions& options, const RewriteReport& report) {
  const LayerSearch layers = find_layers(graph, options.scope);
  const auto unused = unused_nodes(graph);
  for (const LayerMatch& match : layers.matches) {
    const std::string name = match.layer->name();
    if (unused.contains(match.layer)) continue;
    EXPECT_TRUE(is_quantized(match.layer->input(match.weight_input))) << name;
    EXPECT_TRUE(quantizer_after(match.last()->output()) || !in_scope(match.last()->name(), options.scope))
        << name << ": " << match.text();
  }
  for (const LayerSkip& skip : layers.skips) EXPECT_FALSE(skip.reason.empty()) << skip.layer->name();
  for (const Node* node : graph.nodes()) {
    if (!is_layer(*node)) continue;
    const auto lines = std::ranges::count(report.matches, node->name(), &MatchReport::layer);
    EXPECT_EQ(lines, 1) << node->name();
  }
}

/// Or the other tests here would prove little.
TEST(RewriteRandom, NetsHoldEveryOpAndBatchNormsOfEveryFate) {
  std::set<std::string> types;
  std::set<std::string> fates;
  for_random_nets(random_net, 60, [&](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    for (const Node* node : graph.nodes()) types.emplace(node->type());
    for (const BatchNormReport& norm : create_training_graph(graph, options).batch_norms)
      fates.insert(norm.folded ? "folded" : norm.text.substr(0, norm.text.find('[')));
  });
  // A loss ends no such net, and folding makes the others.
  const std::set<std::string> absent = {"SoftmaxCrossEntropy", "MeanSquaredError", "Huber",
                                        "SigmoidCrossEntropy", "BatchNormFold",    "BatchNormCorrection",
                                        "BatchNormScale"};
  layers::register_ops();
  quantize::register_ops();
  for (const std::string& type : registered_ops()) EXPECT_EQ(types.contains(type), !absent.contains(type)) << type;
  EXPECT_TRUE(fates.contains("folded"));
  EXPECT_GE(fates.size(), 6u);
}

/// Nothing new, and no conflict in nets without quantizers of their own.
void expect_twice_is_once(Graph& graph, const std::string& once, const RewriteOptions& options, bool is_training,
                          bool may_conflict) {
  const RewriteReport again = is_training ? create_training_graph(graph, options) : create_eval_graph(graph, options);
  EXPECT_TRUE(again.inserted.empty());
  EXPECT_EQ(graph_to_json(graph), once);
  if (may_conflict) return;
  for (const SettingConflict& conflict : again.conflicts) ADD_FAILURE() << conflict.setting << ": " << conflict.text;
}

/// Of a net, of its training graph and of its evaluation graph: each is sound, is written and read back, has every
/// layer quantized or skipped with a reason, and stays as it is when it is rewritten again. The evaluation graph is the
/// same made of the training graph as of the original.
void expect_all_holds(Graph& graph, const RewriteOptions& options, bool own_quantizers) {
  round_trip(graph);
  Graph evaluation = graph.clone();
  expect_all_layers_seen(evaluation, options, create_eval_graph(evaluation, options));
  const std::string evaluated = round_trip(evaluation);
  expect_twice_is_once(evaluation, evaluated, options, false, own_quantizers);
  expect_all_layers_seen(graph, options, create_training_graph(graph, options));
  expect_twice_is_once(graph, round_trip(graph), options, true, own_quantizers);
  turn_to_evaluation(graph);
  graph.verify();
  EXPECT_EQ(graph_to_json(graph), evaluated);
  EXPECT_TRUE(create_eval_graph(graph, options).inserted.empty());
}

TEST(RewriteRandom, AllHoldsForAnyNet) {
  for_random_nets(random_net, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    expect_all_holds(graph, options, true);
  });
}

TEST(RewriteRandom, AllHoldsForWellFormedNets) {
  for_random_nets(well_formed_net, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    expect_all_holds(graph, options, false);
  });
}

TEST(RewriteRandom, StrictRefusesAllOrNothing) {
  for_random_nets(random_net, [](Graph& graph, RewriteOptions options, std::uint64_t) {
    const std::string before = graph_to_json(graph);
    Graph lenient = graph.clone();
    create_training_graph(lenient, options);
    options.strict = true;
    try {
      create_training_graph(graph, options);
    } catch (const Error&) {
      EXPECT_EQ(graph_to_json(graph), before);
      return;
    }
    EXPECT_EQ(graph_to_json(graph), graph_to_json(lenient));
  });
}

TEST(RewriteRandom, StrictHoldsForWellFormedNets) {
  for_random_nets(well_formed_net, [](Graph& graph, RewriteOptions options, std::uint64_t) {
    options.strict = true;
    options.float_pools = false;
    Graph evaluation = graph.clone();
    create_training_graph(graph, options);
    create_eval_graph(evaluation, options);
    for (const Graph* rewritten : {&graph, &evaluation}) {
      const LayerSearch layers = find_layers(*rewritten, options.scope);
      EXPECT_GE(layers.matches.size(), 3u);
      for (const LayerSkip& skip : layers.skips) EXPECT_TRUE(skip.is_for_statistics()) << skip.layer->name();
      for (const LayerMatch& match : layers.matches) {
        EXPECT_TRUE(is_quantized(match.layer->input(match.weight_input))) << match.layer->name();
        EXPECT_NE(quantizer_after(match.last()->output()), nullptr) << match.layer->name();
      }
    }
  });
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_random_test
