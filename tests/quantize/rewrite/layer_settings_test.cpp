#include "quantize/rewrite/layer_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/errors.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::layer_settings_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::ToyGraph;

/// images -> a -> b -> c, a and b with a Relu.
ToyGraph three_layers() {
  ToyGraph toy;
  toy.graph.set_outputs({toy.conv_bias("c", toy.conv_relu("b", toy.conv_relu("a", toy.images())))});
  return toy;
}

/// The bits of every quantizer by its name.
std::map<std::string, std::int64_t> bits_of(const Graph& graph) {
  std::map<std::string, std::int64_t> bits;
  for (const Node* node : graph.nodes())
    if (const auto* quantizer = node->as<FakeQuant>()) bits[node->name()] = quantizer->bits;
  return bits;
}

std::map<std::string, std::int64_t> rewritten(const RewriteOptions& options) {
  ToyGraph toy = three_layers();
  create_training_graph(toy.graph, options);
  const auto bits = bits_of(toy.graph);
  EXPECT_TRUE(create_training_graph(toy.graph, options).conflicts.empty());
  ToyGraph evaluated = three_layers();
  create_eval_graph(evaluated.graph, options);
  EXPECT_EQ(bits_of(evaluated.graph), bits);
  return bits;
}

using Bits = std::map<std::string, std::int64_t>;

TEST(LayerSettings, ObservedRangesTreatTheLogitsLikeAllOthers) {
  const Bits four = {{"a/weights_quant", 4}, {"a/act_quant", 4},     {"b/weights_quant", 4},
                     {"b/act_quant", 4},     {"c/weights_quant", 4}, {"c/act_quant", 4}};
  EXPECT_EQ(rewritten({.weight_bits = 4, .activation_bits = 4}), four);
}

/// The pictures less a mean, times a factor, through a layer and a pool behind it.
ToyGraph preprocessed() {
  ToyGraph toy;
  Graph& graph = toy.graph;
  const Output mean = layers::constant(graph, "mean", {}, {0.5}), factor = layers::constant(graph, "factor", {}, {4});
  Output x = layers::mul(graph, "Mul", layers::sub(graph, "Sub", toy.images(), mean), factor);
  x = layers::sigmoid(graph, "Sigmoid", x);
  x = layers::avg_pool(graph, "Pool", toy.conv_relu("a", x), {.window = {2, 2}});
  graph.set_outputs({toy.conv_bias("b", x)});
  return toy;
}

TEST(LayerSettings, WhatIsMadeOfThePicturesBeforeLayersHas8Bits) {
  const auto bits_with = [](const RewriteOptions& options) {
    ToyGraph toy = preprocessed();
    create_training_graph(toy.graph, options);
    EXPECT_TRUE(create_training_graph(toy.graph, options).conflicts.empty());
    return bits_of(toy.graph);
  };
  const std::string product = "Mul/activation_Mul_quant", gate = "Sigmoid/activation_Sigmoid_quant",
                    pool = "Pool/activation_AvgPool_quant";
  const Bits four = bits_with({.weight_bits = 4, .activation_bits = 4});
  EXPECT_EQ(four.at(product), 8);
  EXPECT_EQ(four.at(gate), 8);
  EXPECT_EQ(four.at(pool), 4);
  EXPECT_EQ(four.at("a/act_quant"), 4);
  EXPECT_EQ(bits_with({.activation_bits = 12}).at(product), 12) << "8 bits would be fewer";
  const Bits asked = bits_with({.activation_bits = 4, .quantize_input = true});
  EXPECT_EQ(asked.at("images/input_quant"), 4);
  EXPECT_EQ(asked.at(product), 4) << "no more than its input has";
}

TEST(LayerSettings, LearnedRangesGiveTheLogits8Bits) {
  const Bits expected = {{"a/weights_quant", 2}, {"a/act_quant", 3},     {"b/weights_quant", 2},
                         {"b/act_quant", 3},     {"c/weights_quant", 2}, {"c/act_quant", 8}};
  EXPECT_EQ(rewritten({.weight_bits = 2, .activation_bits = 3, .ranges = RangeChoice::kAuto}), expected);
  EXPECT_EQ(rewritten({.weight_bits = 2, .activation_bits = 3, .ranges = RangeChoice::kLearned}), expected);
  const Bits wide = rewritten({.activation_bits = 12, .ranges = RangeChoice::kLearned});
  EXPECT_EQ(wide.at("c/act_quant"), 12) << "8 bits would be fewer";
  EXPECT_EQ(rewritten({.activation_bits = 5, .ranges = RangeChoice::kAuto}).at("c/act_quant"), 5) << "observed";
}

TEST(LayerSettings, LogitsBits) {
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned}) {
    const Bits bits = rewritten({.weight_bits = 2, .activation_bits = 2, .ranges = ranges, .logits_bits = 5});
    EXPECT_EQ(bits.at("c/act_quant"), 5);
    EXPECT_EQ(bits.at("c/weights_quant"), 2);
    EXPECT_EQ(bits.at("b/act_quant"), 2);
  }
}

TEST(LayerSettings, EndsBitsAreThoseOfFirstAndLastWeightsAndOfLogits) {
  const Bits expected = {{"a/weights_quant", 7}, {"a/act_quant", 2},     {"b/weights_quant", 2},
                         {"b/act_quant", 2},     {"c/weights_quant", 7}, {"c/act_quant", 7}};
  EXPECT_EQ(rewritten({.weight_bits = 2, .activation_bits = 2, .ends_bits = 7}), expected);
  const RewriteOptions both = {.weight_bits = 2, .activation_bits = 2, .logits_bits = 4, .ends_bits = 7};
  EXPECT_EQ(rewritten(both).at("c/act_quant"), 4);
  EXPECT_EQ(rewritten(both).at("c/weights_quant"), 7);
}

/// Once a file that names the last layer silently took the effect of both.
TEST(LayerSettings, LogitsBitsAndEndsBitsComeBeforePatterns) {
  const LayerBits all = {.pattern = "*", .weight_bits = 3, .activation_bits = 4};
  const Bits by_file = {{"a/weights_quant", 3}, {"a/act_quant", 4},     {"b/weights_quant", 3},
                        {"b/act_quant", 4},     {"c/weights_quant", 3}, {"c/act_quant", 4}};
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned}) {
    EXPECT_EQ(rewritten({.ranges = ranges, .layer_bits = {all}}), by_file);
    Bits expected = by_file;
    expected["c/act_quant"] = 6;
    EXPECT_EQ(rewritten({.ranges = ranges, .logits_bits = 6, .layer_bits = {all}}), expected);
    expected["a/weights_quant"] = expected["c/weights_quant"] = 7;
    EXPECT_EQ(rewritten({.ranges = ranges, .logits_bits = 6, .ends_bits = 7, .layer_bits = {all}}), expected);
    expected["c/act_quant"] = 7;
    EXPECT_EQ(rewritten({.ranges = ranges, .ends_bits = 7, .layer_bits = {all}}), expected);
  }
}

TEST(LayerSettings, LogitsBitsEqualToActivationBitsComeBeforePatterns) {
  const LayerBits last = {.pattern = "c", .weight_bits = 2, .activation_bits = 2};
  const Bits bits = rewritten({.logits_bits = 8, .layer_bits = {last}});
  EXPECT_EQ(bits.at("c/act_quant"), 8);
  EXPECT_EQ(bits.at("c/weights_quant"), 2);
}

TEST(LayerSettings, AConflictNamesTheFlagThatComesBeforeAPattern) {
  ToyGraph toy = three_layers();
  const std::vector<LayerBits> layer_bits = {{.pattern = "*", .weight_bits = 3, .activation_bits = 4}};
  create_training_graph(toy.graph, {.layer_bits = layer_bits});
  std::vector<std::string> texts;
  for (const auto& conflict :
       create_training_graph(toy.graph, {.logits_bits = 6, .ends_bits = 7, .layer_bits = layer_bits}).conflicts)
    texts.push_back(conflict.setting + ": " + conflict.text);
  EXPECT_EQ(texts, (testing::Names{"ends_bits: a/weights_quant has 3 bits, not 7",
                                   "ends_bits: c/weights_quant has 3 bits, not 7",
                                   "logits_bits: c/act_quant has 4 bits, not 6"}));
}

TEST(LayerSettings, OneLayerIsFirstAndLast) {
  ToyGraph toy;
  toy.graph.set_outputs({toy.conv_relu("only", toy.images())});
  create_training_graph(toy.graph, {.weight_bits = 2, .activation_bits = 2, .ends_bits = 8});
  EXPECT_EQ(bits_of(toy.graph), (Bits{{"only/weights_quant", 8}, {"only/act_quant", 8}}));
}

TEST(LayerSettings, BranchesHaveTheirOwnEnds) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output left = toy.conv_relu("left", images), right = toy.conv_relu("right", images);
  const Output sum = layers::add(toy.graph, "sum", left, right);
  toy.graph.set_outputs({toy.conv_bias("one", sum), toy.conv_bias("two", sum)});
  create_training_graph(toy.graph, {.weight_bits = 2, .activation_bits = 2, .ends_bits = 8});
  const Bits bits = bits_of(toy.graph);
  for (const char* end : {"left/weights_quant", "right/weights_quant", "one/weights_quant", "two/weights_quant",
                          "one/act_quant", "two/act_quant"})
    EXPECT_EQ(bits.at(end), 8) << end;
  EXPECT_EQ(bits.at("left/act_quant"), 2);
}

/// A batch norm that is folded for training brings a convolution for its statistics, which is nobody's neighbour.
TEST(LayerSettings, FoldedBatchNormsChangeNothingAboutTheEnds) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
    ToyGraph toy;
    const auto block = [&](const std::string& scope, Output x) {
      return layers::relu(toy.graph, scope + "/Relu", toy.batch_norm(scope, toy.conv(scope, x)));
    };
    toy.graph.set_outputs({toy.conv_bias("c", block("b", block("a", toy.images())))});
    create_training_graph(toy.graph, {.weight_bits = 3, .activation_bits = 3, .ends_bits = 8, .bn_fold = fold});
    const Bits bits = bits_of(toy.graph);
    EXPECT_EQ(bits.at("a/weights_quant"), 8);
    EXPECT_EQ(bits.at("b/weights_quant"), 3);
    EXPECT_EQ(bits.at("c/weights_quant"), 8);
    EXPECT_EQ(bits.at("a/act_quant"), 3);
    EXPECT_EQ(bits.at("c/act_quant"), 8);
  }
}

TEST(LayerSettings, AnotherWidthIsAConflictThatNamesItsSetting) {
  ToyGraph toy = three_layers();
  create_training_graph(toy.graph, {.weight_bits = 4, .activation_bits = 4, .logits_bits = 6, .ends_bits = 8});
  const RewriteReport again =
      create_training_graph(toy.graph, {.weight_bits = 4, .activation_bits = 4, .logits_bits = 5, .ends_bits = 7});
  std::vector<std::string> texts;
  for (const SettingConflict& conflict : again.conflicts) texts.push_back(conflict.setting + ": " + conflict.text);
  EXPECT_EQ(texts, (testing::Names{"ends_bits: a/weights_quant has 8 bits, not 7",
                                   "ends_bits: c/weights_quant has 8 bits, not 7",
                                   "logits_bits: c/act_quant has 6 bits, not 5"}));
}

TEST(LayerSettings, BitsOutOfRange) {
  Graph graph;
  EXPECT_TRUE(mentions(error_of([&] { create_training_graph(graph, {.logits_bits = 1}); }),
                       {"logits_bits must be 2 to 16, not 1"}));
  EXPECT_TRUE(mentions(error_of([&] { create_training_graph(graph, {.ends_bits = 17}); }),
                       {"ends_bits must be 2 to 16, not 17"}));
}

TEST(LayerSettings, FullRangeWeights) {
  ToyGraph toy = three_layers();
  create_training_graph(toy.graph, {.weight_bits = 2, .full_range_weights = true});
  EXPECT_FALSE(toy.quantizer("a/weights_quant").narrow_range);
  EXPECT_FALSE(toy.quantizer("a/act_quant").narrow_range);
  const RewriteReport again = create_training_graph(toy.graph, {.weight_bits = 2});
  ASSERT_EQ(again.conflicts.size(), 3u);
  EXPECT_EQ(again.conflicts[0].setting, "full_range_weights");
  EXPECT_EQ(again.conflicts[0].text, "a/weights_quant has all integers, not a narrow range");
}

}  // namespace
}  // namespace miniqat::quantize::layer_settings_test
