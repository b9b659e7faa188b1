#include <gtest/gtest.h>

#include <map>

#include "models/models.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/layer_patterns.h"
#include "tests/errors.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::residual_sums_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::Names;
using testing::ToyGraph;

using Bits = std::map<std::string, std::int64_t>;

/// Of the quantizers of activations.
Bits bits_of(const Graph& graph) {
  Bits bits;
  for (const Node* node : graph.nodes())
    if (const auto* quantizer = node->as<FakeQuant>(); quantizer && !node->name().ends_with("weights_quant"))
      bits[node->name()] = quantizer->bits;
  return bits;
}

const RewriteOptions kSums = {.weight_bits = 4, .activation_bits = 4, .sums_bits = 8};

/// Rewritten for training, which a second time changes nothing, and has the quantizers of the evaluation graph.
Bits rewritten(ToyGraph& toy, const RewriteOptions& options = kSums) {
  Graph evaluated = toy.graph.clone();
  create_eval_graph(evaluated, options);
  create_training_graph(toy.graph, options);
  const RewriteReport again = create_training_graph(toy.graph, options);
  EXPECT_EQ(again.inserted, Names{});
  EXPECT_TRUE(again.conflicts.empty());
  EXPECT_EQ(bits_of(evaluated), bits_of(toy.graph));
  return bits_of(toy.graph);
}

/// in -> (one/a, one/b) + in -> Relu -> (two/a, two/b) + that -> Relu -> out.
ToyGraph two_blocks() {
  ToyGraph toy;
  Output x = toy.conv_relu("in", toy.images());
  for (const std::string scope : {"one", "two"}) {
    const Output branch = toy.conv_bias(scope + "/b", toy.conv_relu(scope + "/a", x));
    x = layers::relu(toy.graph, scope + "/Relu", layers::add(toy.graph, scope + "/Add", branch, x));
  }
  toy.graph.set_outputs({toy.conv_bias("out", x)});
  return toy;
}

TEST(ResidualSums, KeepTheirBitsAndLayersReadFewer) {
  ToyGraph toy = two_blocks();
  const Bits expected = {{"in/act_quant", 8},  {"in/edge_quant", 4},  {"one/a/act_quant", 4}, {"one/b/conv_quant", 8},
                         {"one/act_quant", 8}, {"one/edge_quant", 4}, {"two/a/act_quant", 4}, {"two/b/conv_quant", 8},
                         {"two/act_quant", 4}, {"out/act_quant", 4}};
  EXPECT_EQ(rewritten(toy), expected) << "only a layer reads the second sum";
  EXPECT_EQ(toy.input("in/edge_quant"), "in/act_quant");
  EXPECT_EQ(toy.input("one/a/Conv2D"), "in/edge_quant");
  EXPECT_EQ(toy.input("one/Add", 0), "one/b/conv_quant");
  EXPECT_EQ(toy.input("one/Add", 1), "in/act_quant");
  EXPECT_EQ(toy.input("one/edge_quant"), "one/act_quant");
  EXPECT_EQ(toy.input("two/a/Conv2D"), "one/edge_quant");
  EXPECT_EQ(toy.input("two/Add", 1), "one/act_quant");
  EXPECT_EQ(toy.input("out/Conv2D"), "two/act_quant");
}

TEST(ResidualSums, AreAsAllOthersWithoutTheOption) {
  ToyGraph toy = two_blocks(), same = two_blocks();
  for (const auto& [name, bits] : rewritten(toy, {.activation_bits = 4})) EXPECT_EQ(bits, 4) << name;
  EXPECT_EQ(rewritten(same, {.activation_bits = 4, .sums_bits = 4}), bits_of(toy.graph));
}

TEST(ResidualSums, LayersShareOneQuantizer) {
  ToyGraph toy;
  const Output x = toy.conv_relu("in", toy.images());
  const Output left = toy.conv_bias("left", x), right = toy.conv_bias("right", x);
  const Output sum = layers::add(toy.graph, "Add", layers::add(toy.graph, "first", left, right), x);
  toy.graph.set_outputs({layers::mean(toy.graph, "Mean", sum, {.axes = {1, 2}})});
  const Bits expected = {{"in/act_quant", 8},
                         {"in/edge_quant", 4},
                         {"left/conv_quant", 8},
                         {"add_quant", 8},
                         {"right/conv_quant", 8},
                         {"post_activation_bypass_quant", 8},
                         {"Mean/activation_Mean_quant", 4}};
  EXPECT_EQ(rewritten(toy), expected) << "the Mean reads the sum as it is";
  EXPECT_EQ(toy.input("left/Conv2D"), "in/edge_quant");
  EXPECT_EQ(toy.input("right/Conv2D"), "in/edge_quant");
}

/// A shortcut that leaves out pixels: the pool keeps the grid of its input.
TEST(ResidualSums, ReachThroughOpsThatKeepTheRange) {
  ToyGraph toy;
  const Output x = toy.conv_relu("in", toy.images());
  const Output pool = layers::max_pool(toy.graph, "pool", x, {.window = {1, 1}, .strides = {1, 1}});
  const Output branch = toy.conv_bias("b", pool);
  const Output flat = layers::identity(toy.graph, "copy", x);
  const Output sum = layers::add(toy.graph, "Add", layers::add(toy.graph, "first", branch, pool), toy.conv("c", flat));
  toy.graph.set_outputs({layers::relu(toy.graph, "Relu", sum)});
  const Bits bits = rewritten(toy);
  EXPECT_EQ(bits.at("in/act_quant"), 8);
  EXPECT_EQ(toy.input("pool"), "in/act_quant");
  EXPECT_EQ(toy.input("first", 1), "pool");
  // What is read by a layer alone is narrow from the top, what a sum reads as well only before the layer.
  EXPECT_EQ(toy.input("b/Conv2D"), "in/edge_quant_1");
  EXPECT_EQ(toy.input("in/edge_quant_1"), "pool");
  EXPECT_EQ(toy.input("copy"), "in/edge_quant");
  EXPECT_EQ(toy.input("in/edge_quant"), "in/act_quant");
  EXPECT_EQ(bits.at("in/edge_quant_1"), 4);
  EXPECT_EQ(bits.at("act_quant"), 8) << "an output of the network is no layer";
}

TEST(ResidualSums, WithoutActivationAreNarrowIfOnlyLayersReadThem) {
  ToyGraph toy;
  const Output x = toy.conv_relu("in", toy.images());
  // The quantizer takes the folder of the older layer.
  const Output c = toy.conv_bias("c/c", x), b = toy.conv_bias("b/b", x);
  const Output sum = layers::add(toy.graph, "Add", b, c);
  toy.graph.set_outputs({toy.conv_bias("out", sum)});
  const Bits expected = {
      {"in/act_quant", 4}, {"b/b/conv_quant", 8}, {"c/c/conv_quant", 8}, {"c/add_quant", 4}, {"out/act_quant", 4}};
  EXPECT_EQ(rewritten(toy), expected);
}

TEST(ResidualSums, BetweenLayersKeepTheirBitsToo) {
  ToyGraph toy;
  const Output x = toy.conv_relu("in", toy.images());
  const Output pool = layers::avg_pool(toy.graph, "pool", x, {.window = {1, 1}, .strides = {1, 1}});
  const Output y = layers::relu(toy.graph, "Relu", layers::add(toy.graph, "Add", x, pool));
  const Output moved = layers::max_pool(toy.graph, "moved", y, {.window = {1, 1}, .strides = {1, 1}});
  const Output next = layers::add(toy.graph, "next", moved, pool);
  toy.graph.set_outputs({toy.conv_bias("out", y), toy.conv_bias("deep", moved), toy.conv_bias("other", next)});
  const Bits bits = rewritten(toy);
  EXPECT_EQ(bits.at("pool/activation_AvgPool_quant"), 8);
  EXPECT_EQ(bits.at("Relu/activation_Relu_quant"), 8);
  EXPECT_EQ(bits.at("next/activation_Add_quant"), 4);
  EXPECT_EQ(toy.input("out/Conv2D"), "Relu/edge_quant");
  EXPECT_EQ(toy.input("deep/Conv2D"), "Relu/edge_quant_1");
  EXPECT_EQ(toy.input("Relu/edge_quant_1"), "moved");
  EXPECT_EQ(toy.initial("Relu/edge_quant/min"), 0) << "a learned range keeps it";
}

TEST(ResidualSums, ALayerThatComesLaterReadsTheQuantizerThatIsThere) {
  ToyGraph toy = two_blocks();
  create_training_graph(toy.graph, kSums);
  const Output late = toy.conv_bias("late", toy.graph.at("one/act_quant").output());
  toy.graph.set_outputs({toy.graph.outputs().front(), late});
  const RewriteReport report = create_training_graph(toy.graph, kSums);
  EXPECT_EQ(report.inserted, (Names{"late/weights_quant", "late/act_quant"}));
  EXPECT_TRUE(report.conflicts.empty());
  EXPECT_EQ(toy.input("late/Conv2D"), "one/edge_quant");
}

TEST(ResidualSums, WhatIsNoneStaysAsItIs) {
  ToyGraph toy;
  Output x = toy.conv_relu("a", toy.images());
  x = layers::add(toy.graph, "parameter", x, layers::variable(toy.graph, "v", {1, 4, 4, 2}));
  x = layers::add(toy.graph, "vector", toy.conv_relu("b", x), layers::variable(toy.graph, "w", {2}));
  toy.graph.set_outputs({toy.conv_bias("c", x)});
  EXPECT_TRUE(ResidualSums(toy.graph).empty());
  const RewriteReport report = create_training_graph(toy.graph, kSums);
  EXPECT_EQ(report.remarks, Names{"`sums_bits` has no effect: there is no residual sum"});
  for (const auto& [name, bits] : bits_of(toy.graph)) EXPECT_EQ(bits, 4) << name;
}

TEST(ResidualSums, ARangeBehindAReluBeginsAtZeroAndLearnsIfItsOwnWidthDoes) {
  ToyGraph toy = two_blocks();
  RewriteOptions options = kSums;
  options.ranges = RangeChoice::kAuto;
  options.symmetric = false;
  rewritten(toy, options);
  EXPECT_EQ(toy.quantizer("one/act_quant").range, RangeKind::kMovingAverage) << "8 bits are observed";
  EXPECT_EQ(toy.quantizer("one/edge_quant").range, RangeKind::kLearned);
  EXPECT_EQ(toy.initial("one/edge_quant/min"), 0);
  EXPECT_EQ(toy.initial("one/edge_quant/max"), 6);
}

TEST(ResidualSums, AFunctionOfKnownRangeKeepsItForLayers) {
  ToyGraph toy;
  const Output x = layers::sigmoid(toy.graph, "Sigmoid", toy.conv_bias("in", toy.images()));
  const Output sum = layers::add(toy.graph, "Add", toy.conv_bias("b", x), x);
  toy.graph.set_outputs({layers::relu(toy.graph, "Relu", sum)});
  rewritten(toy);
  EXPECT_EQ(toy.input("b/Conv2D"), "Sigmoid/edge_quant");
  EXPECT_EQ(toy.quantizer("Sigmoid/edge_quant").range, RangeKind::kFixed);
  EXPECT_EQ(toy.initial("Sigmoid/activation_Sigmoid_quant/max"), 255.0 / 256);
  EXPECT_EQ(toy.initial("Sigmoid/edge_quant/max"), 15.0 / 16);
}

TEST(ResidualSums, APatternDecidesAboutBothWidths) {
  RewriteOptions options = kSums;
  options.layer_bits = {{.pattern = "in", .activation_bits = 3},
                        {.pattern = "one/b", .sums_bits = 6},
                        {.pattern = "two/b", .activation_bits = 8}};
  ToyGraph toy = two_blocks();
  Bits bits = rewritten(toy, options);
  EXPECT_EQ(bits.at("in/act_quant"), 8);
  EXPECT_EQ(bits.at("in/edge_quant"), 3);
  EXPECT_EQ(bits.at("one/b/conv_quant"), 6);
  EXPECT_EQ(bits.at("one/act_quant"), 6);
  EXPECT_EQ(bits.at("one/edge_quant"), 4);
  EXPECT_EQ(bits.at("two/b/conv_quant"), 8);

  ToyGraph wide = two_blocks();
  bits =
      rewritten(wide, {.activation_bits = 4, .sums_bits = 8, .layer_bits = {{.pattern = "in", .activation_bits = 9}}});
  EXPECT_EQ(bits.at("in/act_quant"), 9) << "one quantizer has enough for both";
  EXPECT_FALSE(bits.contains("in/edge_quant"));

  ToyGraph alone = two_blocks();
  bits = rewritten(alone, {.activation_bits = 4, .layer_bits = {{.pattern = "one/b", .sums_bits = 5}}});
  EXPECT_EQ(bits.at("one/act_quant"), 5);
  EXPECT_EQ(bits.at("in/act_quant"), 4) << "only the pattern asks";
}

TEST(ResidualSums, TheNetworksOutputGoesByItsOwnBits) {
  const auto net = [] {
    ToyGraph toy;
    const Output x = toy.conv_relu("in", toy.images());
    const Output right = toy.conv_bias("r/right", x), left = toy.conv_bias("l/left", x);
    toy.graph.set_outputs({layers::add(toy.graph, "Add", left, right)});
    return toy;
  };
  ToyGraph toy = net();
  EXPECT_EQ(rewritten(toy),
            (Bits{{"in/act_quant", 4}, {"l/left/conv_quant", 8}, {"r/right/conv_quant", 8}, {"r/add_quant", 8}}));
  for (const int logits : {4, 6}) {
    ToyGraph with_logits = net();
    RewriteOptions options = kSums;
    options.logits_bits = logits;
    EXPECT_EQ(rewritten(with_logits, options).at("r/add_quant"), logits);
  }
}

TEST(ResidualSums, OtherWidthsAreConflicts) {
  const auto texts = [](const RewriteOptions& first, const RewriteOptions& second) {
    ToyGraph toy = two_blocks();
    create_training_graph(toy.graph, first);
    const RewriteReport again = create_training_graph(toy.graph, second);
    EXPECT_EQ(again.inserted, Names{});
    Names found;
    for (const SettingConflict& conflict : again.conflicts) found.push_back(conflict.setting + ": " + conflict.text);
    return found;
  };
  RewriteOptions others = kSums;
  others.sums_bits = 7;
  EXPECT_EQ(texts(kSums, others),
            (Names{"sums_bits: in/act_quant has 8 bits, not 7", "sums_bits: one/b/conv_quant has 8 bits, not 7",
                   "sums_bits: one/act_quant has 8 bits, not 7", "sums_bits: two/b/conv_quant has 8 bits, not 7"}));
  others = kSums;
  others.activation_bits = 3;
  EXPECT_EQ(
      texts(kSums, others),
      (Names{"activation_bits: in/edge_quant has 4 bits, not 3", "activation_bits: one/a/act_quant has 4 bits, not 3",
             "activation_bits: one/edge_quant has 4 bits, not 3", "activation_bits: two/a/act_quant has 4 bits, not 3",
             "activation_bits: two/act_quant has 4 bits, not 3", "activation_bits: out/act_quant has 4 bits, not 3"}));
  EXPECT_EQ(texts({.weight_bits = 4, .activation_bits = 4}, kSums).size(), 4u) << "nothing is narrowed afterwards";
}

TEST(ResidualSums, WidthsOutOfRange) {
  Graph graph;
  const auto refusal = [&](const RewriteOptions& options) {
    return error_of([&] { create_training_graph(graph, options); });
  };
  for (const int bits : {1, 17})
    EXPECT_TRUE(mentions(refusal({.activation_bits = 4, .sums_bits = bits}),
                         {concat("sums_bits must be 2 to 16, not ", bits)}));
  EXPECT_TRUE(mentions(refusal({.activation_bits = 4, .sums_bits = 3}),
                       {"sums_bits must be 4 or more, the bits of activations, not 3"}));
  EXPECT_TRUE(mentions(refusal({.activation_bits = 4, .layer_bits = {{.pattern = "a", .sums_bits = 3}}}),
                       {"pattern \"a\"", "sums_bits must be 4 or more, the bits of activations, not 3"}));
  EXPECT_TRUE(mentions(refusal({.layer_bits = {{.pattern = "a", .activation_bits = 5, .sums_bits = 4}}}),
                       {"pattern \"a\"", "sums_bits must be 5 or more"}));
  EXPECT_TRUE(mentions(refusal({.layer_bits = {{.pattern = "a", .sums_bits = 17}}}), {"sums_bits must be 2 to 16"}));
}

TEST(ResidualSums, TheReportNamesBothQuantizers) {
  ToyGraph toy = two_blocks();
  const std::string text = create_training_graph(toy.graph, kSums).text();
  for (const char* part : {"output in/Relu -> in/act_quant (8 bits), for layers in/edge_quant",
                           "before the bypass one/b/BiasAdd -> one/b/conv_quant (8 bits), output one/Relu -> "
                           "one/act_quant (8 bits), for layers one/edge_quant",
                           "one/Relu       -> two/a/Conv2D   quantized  one/edge_quant",
                           "one/Relu       -> two/Add        quantized  one/act_quant"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  ToyGraph same = two_blocks();
  EXPECT_EQ(create_training_graph(same.graph, {.sums_bits = 8}).remarks,
            Names{"`sums_bits` has no effect: all activations have 8 bits"});
}

/// Every layer but the first reads 4 bits, every sum but the last reads 8, in both foldings.
TEST(ResidualSums, OfModels) {
  for (const std::string model : {"resnet20", "mobilenet_v2"})
    for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
      Graph graph;
      const Output images = layers::placeholder(graph, "images", {2, 32, 32, 3});
      graph.set_outputs({models::find_model(model).build(graph, images, {.classes = 10, .width = 0.25})});
      RewriteOptions options = kSums;
      options.bn_fold = fold;
      create_training_graph(graph, options);
      create_eval_graph(graph, options);
      int sums = 0, layers = 0;
      for (const Node* node : graph.topological_order()) {
        const auto bits_read = [&](int input) {
          return source_through(node->input(input), OpRole::kKeepsRange).node->as<FakeQuant>()->bits;
        };
        if (is_layer(*node) && ++layers > 1) {
          EXPECT_EQ(bits_read(0), 4) << model << " " << node->name();
        }
        if (node->type() != "Add" || node->input(0).shape() != node->input(1).shape()) continue;
        ++sums;
        for (const int input : {0, 1}) EXPECT_EQ(bits_read(input), 8) << model << " " << node->name();
      }
      EXPECT_EQ(sums, model == "resnet20" ? 9 : 11);
    }
}

}  // namespace
}  // namespace miniqat::quantize::residual_sums_test
