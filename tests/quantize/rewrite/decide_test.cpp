#include "quantize/rewrite/decide.h"

#include <gtest/gtest.h>

#include <map>

#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::decide_test {
namespace {

using testing::Names;
using testing::ToyGraph;

Decisions decided(const Graph& graph, const RewriteOptions& options = {}) {
  return decide(graph, find_layers(graph, options.scope), options, true);
}

/// A residual block behind a layer, a product that a Relu follows, and an op that stays float.
const std::string kNet =
    "images | conv_relu in | conv_bias block/conv | Add block/Add in/Relu | Relu block/Relu | Mul Mul in/Relu | Relu "
    "Relu |"
    "Softmax Softmax | Square Square";

/// "tensor -> quantizer", and the bits that it asks for.
Names rows_of(const Decisions& decisions) {
  Names rows;
  for (const QuantizerRow& row : decisions.quantizers)
    rows.push_back(concat(row.tensor.name(), " -> ", row.name, " ", row.attributes.bits));
  return rows;
}

TEST(Decide, TheTableHasEveryQuantizerOrTheReasonForNone) {
  const ToyGraph toy(kNet);
  const std::string before = graph_to_json(toy.graph);
  const Decisions decisions = decided(toy.graph, {.weight_bits = 3, .activation_bits = 4, .sums_bits = 8});
  EXPECT_EQ(rows_of(decisions),
            (Names{"in/weights -> in/weights_quant 3", "in/Relu -> in/act_quant 8", "in/Relu -> in/edge_quant 4",
                   "block/conv/weights -> block/conv/weights_quant 3", "block/conv/BiasAdd -> block/conv/conv_quant 8",
                   "block/Relu -> block/act_quant 8", "Relu -> Relu/activation_Relu_quant 4"}));
  std::map<std::string, std::string> left;
  for (const auto& [node, reason] : decisions.left_float) left[node->name()] = reason.reason;
  EXPECT_EQ(left.at("Mul"), "left to Relu, which follows");
  EXPECT_EQ(left.at("in/BiasAdd"), "none of its inputs is quantized");
  EXPECT_EQ(graph_to_json(toy.graph), before) << "deciding changes nothing";
}

TEST(Decide, EdgesThatMove) {
  const ToyGraph toy(kNet);
  const Decisions decisions = decided(toy.graph, {.activation_bits = 4, .sums_bits = 8});
  const QuantizerRow &weights = decisions.quantizers[0], &sum = decisions.quantizers[1],
                     &narrow = decisions.quantizers[2];
  EXPECT_FALSE(weights.takes_all);
  EXPECT_EQ(weights.readers, (std::vector<Use>{{&toy.graph.at("in/Conv2D"), 1}}));
  EXPECT_TRUE(sum.takes_all);
  EXPECT_EQ(narrow.readers, (std::vector<Use>{{&toy.graph.at("block/conv/Conv2D"), 0}}));
}

TEST(Decide, AQuantizerThatIsThereGetsMoreReaders) {
  const ToyGraph toy("[1,1,2,2]weights | FakeQuant mine 5; images | conv a mine | conv b weights");
  const Decisions decisions = decided(toy.graph);
  EXPECT_EQ(rows_of(decisions), (Names{"weights -> mine 5", "a/Conv2D -> a/act_quant 8", "b/Conv2D -> b/act_quant 8"}));
  EXPECT_EQ(decisions.quantizers[0].node, &toy.graph.at("mine"));
  EXPECT_EQ(decisions.quantizers[0].readers, (std::vector<Use>{{&toy.graph.at("b/Conv2D"), 1}}));
}

TEST(Decide, WhatBecameOfEachPattern) {
  const ToyGraph toy("images | conv a | conv b; other | conv fixed =[1,1,2,2]c");
  RewriteOptions options;
  for (const char* pattern : {"a", "?", "b", "fixed", "none"})
    options.layer_bits.push_back({.pattern = pattern, .weight_bits = 4});
  const Decisions decisions = decided(toy.graph, options);
  Names fates;
  for (const PatternDecision& pattern : decisions.patterns)
    fates.push_back(concat(pattern.pattern, pattern.decides ? " decides, " : " does not, ",
                           pattern.layer  ? pattern.layer->match->layer->name()
                           : pattern.skip ? pattern.skip->layer->name() + " is skipped"
                                          : "matches none"));
  EXPECT_EQ(fates, (Names{"a decides, a/Conv2D", "? decides, a/Conv2D", "b does not, b/Conv2D",
                          "fixed does not, fixed/Conv2D is skipped", "none does not, matches none"}));
}

TEST(Decide, RequestsThatMeetNothing) {
  const ToyGraph toy("images | conv a");
  const Decisions none = decided(toy.graph), all = decided(toy.graph, {.input_bits = 4, .float_pools = true});
  EXPECT_FALSE(none.misses_pools || none.misses_inputs);
  EXPECT_TRUE(all.misses_pools && all.misses_inputs);
  EXPECT_FALSE(decided(toy.graph, {.input_bits = 4, .quantize_input = true}).misses_inputs);
}

TEST(Decide, AScopeWithoutLayersIsNamed) {
  const ToyGraph toy(kNet);
  EXPECT_EQ(decided(toy.graph).missed_scope, "");
  EXPECT_EQ(decided(toy.graph, {.scope = "block"}).missed_scope, "");
  EXPECT_EQ(decided(toy.graph, {.scope = "blocks"}).missed_scope, "no layer is in scope \"blocks\"");
}

}  // namespace
}  // namespace miniqat::quantize::decide_test
