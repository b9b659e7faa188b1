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

void expect_round_trip(const Graph& graph) {
  graph.verify();
  const std::string text = graph_to_json(graph);
  const Graph again = graph_from_json(text);
  again.verify();
  EXPECT_EQ(graph_to_json(again), text);
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

TEST(RewriteRandom, NetsAreWrittenAndReadBack) {
  for_random_nets(random_net, [](Graph& graph, const RewriteOptions&, std::uint64_t) { expect_round_trip(graph); });
  for_random_nets(well_formed_net,
                  [](Graph& graph, const RewriteOptions&, std::uint64_t) { expect_round_trip(graph); });
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
  const std::set<std::string> absent = {"SoftmaxCrossEntropy", "BatchNormFold", "BatchNormCorrection",
                                        "BatchNormScale"};
  layers::register_ops();
  quantize::register_ops();
  for (const std::string& type : registered_ops()) EXPECT_EQ(types.contains(type), !absent.contains(type)) << type;
  EXPECT_TRUE(fates.contains("folded"));
  EXPECT_GE(fates.size(), 6u);
}

TEST(RewriteRandom, TwiceIsTheSameAsOnce) {
  for (const auto make : {random_net, well_formed_net})
    for_random_nets(make, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
      create_training_graph(graph, options);
      const std::string once = graph_to_json(graph);
      EXPECT_TRUE(create_training_graph(graph, options).inserted.empty());
      EXPECT_EQ(graph_to_json(graph), once);
    });
}

/// Nets without quantizers of their own.
TEST(RewriteRandom, TwiceIsAsAsked) {
  for (const bool is_training : {false, true})
    for_random_nets(well_formed_net, [&](Graph& graph, const RewriteOptions& options, std::uint64_t) {
      const auto rewrite = is_training ? create_training_graph : create_eval_graph;
      rewrite(graph, options);
      for (const SettingConflict& conflict : rewrite(graph, options).conflicts)
        ADD_FAILURE() << conflict.setting << ": " << conflict.text;
    });
}

TEST(RewriteRandom, ForEvaluationTwiceIsTheSameAsOnce) {
  for (const auto make : {random_net, well_formed_net})
    for_random_nets(make, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
      create_eval_graph(graph, options);
      const std::string once = graph_to_json(graph);
      EXPECT_TRUE(create_eval_graph(graph, options).inserted.empty());
      EXPECT_EQ(graph_to_json(graph), once);
    });
}

TEST(RewriteRandom, EvaluationIsTheSameOfTheTrainingGraphAsOfTheOriginal) {
  for (const auto make : {random_net, well_formed_net})
    for_random_nets(make, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
      Graph evaluation = graph.clone();
      create_eval_graph(evaluation, options);
      create_training_graph(graph, options);
      turn_to_evaluation(graph);
      graph.verify();
      EXPECT_EQ(graph_to_json(graph), graph_to_json(evaluation));
      EXPECT_TRUE(create_eval_graph(graph, options).inserted.empty());
    });
}

TEST(RewriteRandom, IsSoundAndRoundTrips) {
  for (const auto make : {random_net, well_formed_net})
    for_random_nets(make, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
      create_training_graph(graph, options);
      expect_round_trip(graph);
      create_eval_graph(graph, options);
      expect_round_trip(graph);
    });
}

TEST(RewriteRandom, EveryLayerIsQuantizedOrSkippedWithAReason) {
  for (const auto make : {random_net, well_formed_net})
    for_random_nets(make, [](Graph& graph, const RewriteOptions& options, std::uint64_t) {
      Graph evaluation = graph.clone();
      expect_all_layers_seen(evaluation, options, create_eval_graph(evaluation, options));
      expect_all_layers_seen(graph, options, create_training_graph(graph, options));
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
