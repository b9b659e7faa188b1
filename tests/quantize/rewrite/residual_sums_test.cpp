#include "models/models.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/layer_patterns.h"
#include "tests/quantize/rewrite/rewrite_case.h"

namespace miniqat::quantize::residual_sums_test {
namespace {

using testing::Names;
using testing::RewriteCase;
using testing::SecondRewrite;
using testing::ToyGraph;

/// in -> (one/a, one/b) + in -> Relu -> (two/a, two/b) + that -> Relu -> out.
const std::string kTwoBlocks =
    "images | conv_relu in | conv_relu one/a | conv_bias one/b | Add one/Add in/Relu | Relu one/Relu |"
    "conv_relu two/a | conv_bias two/b | Add two/Add one/Relu | Relu two/Relu | conv_bias out | output";

/// Adds of parameters, which are no sums.
const std::string kParameters =
    "images | conv_relu a | Add parameter [1,4,4,2]v | conv_relu b | Add vector [2]w | conv_bias c | output";

RewriteOptions sums(int bits, const std::vector<LayerBits>& layer_bits = {}) {
  return {.weight_bits = 4, .activation_bits = 4, .sums_bits = bits, .layer_bits = layer_bits};
}
const RewriteOptions kSums = sums(8);

const std::vector<RewriteCase> kRows = {
    // Only a layer reads the second sum.
    {"KeepTheirBitsAndLayersReadFewer",
     kTwoBlocks,
     kSums,
     {"in/weights_quant: 4", "in/Relu > in/act_quant > one/Add:1 in/edge_quant: 8",
      "in/act_quant > in/edge_quant > one/a/Conv2D: 4", "one/a/weights_quant", "one/a/act_quant: 4",
      "one/b/weights_quant", "one/b/BiasAdd > one/b/conv_quant > one/Add: 8",
      "one/Relu > one/act_quant > two/Add:1 one/edge_quant: 8", "one/act_quant > one/edge_quant > two/a/Conv2D: 4",
      "two/a/weights_quant", "two/a/act_quant: 4", "two/b/weights_quant", "two/b/conv_quant: 8",
      "two/Relu > two/act_quant > out/Conv2D: 4", "out/weights_quant", "out/act_quant: 4"},
     {"in/Conv2D: matched: layer + bias + Relu + post-activation bypass: weights in/weights -> in/weights_quant, "
      "output "
      "in/Relu -> in/act_quant (8 bits), for layers in/edge_quant, after the bypass one/Add -> no quantizer, a Relu "
      "follows",
      "one/Relu -> two/a/Conv2D: quantized: one/edge_quant", "one/Relu -> two/Add: quantized: one/act_quant"}},
    {"AreAsAllOthersWithoutTheOption",
     kTwoBlocks,
     {.activation_bits = 4},
     {"in/weights_quant: 8", "in/act_quant: 4", "one/a/weights_quant", "one/a/act_quant: 4", "one/b/weights_quant",
      "one/b/conv_quant: 4", "one/act_quant: 4", "two/a/weights_quant", "two/a/act_quant: 4", "two/b/weights_quant",
      "two/b/conv_quant: 4", "two/act_quant: 4", "out/weights_quant", "out/act_quant: 4"}},
    {"AreAsAllOthersOfTheirBits",
     kTwoBlocks,
     {.activation_bits = 4, .sums_bits = 4},
     {"in/weights_quant: 8", "in/act_quant: 4", "one/a/weights_quant", "one/a/act_quant: 4", "one/b/weights_quant",
      "one/b/conv_quant: 4", "one/act_quant: 4", "two/a/weights_quant", "two/a/act_quant: 4", "two/b/weights_quant",
      "two/b/conv_quant: 4", "two/act_quant: 4", "out/weights_quant", "out/act_quant: 4"},
     {"note: `sums_bits` has no effect: all activations have 4 bits"}},
    // The Mean reads the sum as it is.
    {"LayersShareOneQuantizer",
     "images | conv_relu in | conv_bias left; in/Relu | conv_bias right; left/BiasAdd | Add first right/BiasAdd |"
     "Add Add in/Relu | Mean Mean | output",
     kSums,
     {"in/weights_quant", "in/act_quant: 8", "in/act_quant > in/edge_quant > left/Conv2D right/Conv2D: 4",
      "post_activation_bypass_quant: 8", "left/weights_quant", "left/conv_quant: 8", "add_quant: 8",
      "right/weights_quant", "right/conv_quant: 8", "Mean/activation_Mean_quant: 4"}},
    // A shortcut that leaves out pixels: the pool keeps the grid of its input. What is read by a layer alone is narrow
    // from the top, what a sum reads as well only before the layer. An output of the network is no layer.
    {"ReachThroughOpsThatKeepTheRange",
     "images | conv_relu in | MaxPool pool 1 | conv_bias b; in/Relu | Identity copy | conv c;"
     "b/BiasAdd | Add first pool | Add Add c/Conv2D | Relu Relu | output",
     kSums,
     {"in/weights_quant", "in/Relu > in/act_quant > pool in/edge_quant: 8", "in/act_quant > in/edge_quant > copy: 4",
      "pool > in/edge_quant_1 > b/Conv2D: 4", "b/weights_quant", "b/conv_quant: 8", "add_quant: 8", "c/weights_quant",
      "c/conv_quant: 8", "act_quant: 8"}},
    // The quantizer takes the folder of the older layer.
    {"WithoutActivationAreNarrowIfOnlyLayersReadThem",
     "images | conv_relu in | conv_bias c/c; in/Relu | conv_bias b/b | Add Add c/c/BiasAdd | conv_bias out | output",
     kSums,
     {"in/weights_quant", "in/act_quant: 4", "c/c/weights_quant", "c/c/conv_quant: 8", "c/add_quant: 4",
      "b/b/weights_quant", "b/b/conv_quant: 8", "out/weights_quant", "out/act_quant: 4"}},
    // A learned range would keep that it begins at 0.
    {"BetweenLayersKeepTheirBitsToo",
     "images | conv_relu in | AvgPool pool 1; in/Relu | Add Add pool | Relu Relu | MaxPool moved 1 | Add next pool;"
     "Relu | conv_bias out | output; moved | conv_bias deep | output; next | conv_bias other | output",
     kSums,
     {"in/weights_quant", "in/act_quant", "out/weights_quant", "out/act_quant", "deep/weights_quant", "deep/act_quant",
      "other/weights_quant", "other/act_quant", "pool/activation_AvgPool_quant: 8", "Relu/activation_Relu_quant: 8",
      "Relu/activation_Relu_quant > Relu/edge_quant > out/Conv2D: 4 from=0", "moved > Relu/edge_quant_1 > deep/Conv2D",
      "next/activation_Add_quant: 4"}},
    {"WhatIsNoneStaysAsItIs",
     kParameters,
     kSums,
     {"a/weights_quant", "a/act_quant: 4", "post_activation_bypass_quant: 4", "b/weights_quant", "b/act_quant: 4",
      "post_activation_bypass_quant_1: 4", "c/weights_quant", "c/act_quant: 4"},
     {"note: `sums_bits` has no effect: there is no residual sum"}},
    {"AllActivationsHaveTheirBits",
     "images | conv_relu in | conv_bias a | Add Add in/Relu",
     {.sums_bits = 8},
     {"in/weights_quant", "in/act_quant: 8", "post_activation_bypass_quant: 8", "a/weights_quant", "a/conv_quant: 8"},
     {"note: `sums_bits` has no effect: all activations have 8 bits"}},
    // 8 bits are observed.
    {"ARangeBehindAReluBeginsAtZeroAndLearnsIfItsOwnWidthDoes",
     "images | conv_relu in | conv_bias a | Add Add in/Relu | output",
     {.weight_bits = 4, .activation_bits = 4, .ranges = RangeChoice::kAuto, .sums_bits = 8},
     {"in/weights_quant", "in/act_quant: moving_average", "in/edge_quant: learned from=0 to=6",
      "post_activation_bypass_quant", "a/weights_quant", "a/conv_quant: moving_average"}},
    {"AFunctionOfKnownRangeKeepsItForLayers",
     "images | conv_bias in | Sigmoid Sigmoid | conv_bias b | Add Add Sigmoid | Relu Relu | output",
     kSums,
     {"in/weights_quant", "in/act_quant", "b/weights_quant", "b/conv_quant", "act_quant",
      "Sigmoid/activation_Sigmoid_quant: fixed to=0.996094",
      "Sigmoid/activation_Sigmoid_quant > Sigmoid/edge_quant > b/Conv2D: fixed to=0.9375"}},
    {"APatternDecidesAboutBothWidths",
     kTwoBlocks,
     sums(8, {{.pattern = "in", .activation_bits = 3},
              {.pattern = "one/b", .sums_bits = 6},
              {.pattern = "two/b", .activation_bits = 8}}),
     {"in/weights_quant", "in/act_quant: 8", "in/edge_quant: 3", "one/a/weights_quant", "one/a/act_quant: 4",
      "one/b/weights_quant", "one/b/conv_quant: 6", "one/act_quant: 6", "one/edge_quant: 4", "two/a/weights_quant",
      "two/a/act_quant: 4", "two/b/weights_quant", "two/b/conv_quant: 8", "two/act_quant: 8", "out/weights_quant",
      "out/act_quant: 4"}},
    // One quantizer has enough for both.
    {"APatternMayWantMore",
     "images | conv_relu in | conv_bias a | Add Add in/Relu | output",
     sums(8, {{.pattern = "in", .activation_bits = 9}}),
     {"in/weights_quant", "in/act_quant: 9", "post_activation_bypass_quant: 9", "a/weights_quant", "a/conv_quant: 8"},
     {"note: bits of layers (`bits_config`): Add is shared: the settings of in/Conv2D apply, those of a/Conv2D are "
      "ignored"}},
    {"OnlyThePatternAsks",
     kTwoBlocks,
     {.activation_bits = 4, .layer_bits = {{.pattern = "one/b", .sums_bits = 5}}},
     {"in/weights_quant", "in/act_quant: 4", "one/a/weights_quant", "one/a/act_quant", "one/b/weights_quant",
      "one/b/conv_quant: 5", "one/act_quant: 5", "one/edge_quant: 4", "two/a/weights_quant", "two/a/act_quant",
      "two/b/weights_quant", "two/b/conv_quant: 4", "two/act_quant", "out/weights_quant", "out/act_quant"}},
    {"TheNetworksOutputGoesByItsOwnBits",
     "images | conv_relu in | conv_bias r/right; in/Relu | conv_bias l/left; r/right/BiasAdd | Add Add l/left/BiasAdd |"
     "output",
     kSums,
     {"in/weights_quant", "in/act_quant: 4", "r/right/weights_quant", "r/right/conv_quant: 8", "r/add_quant: 8",
      "l/left/weights_quant", "l/left/conv_quant: 8"}},
    {"TheNetworksOutputHasTheBitsOfLogits",
     "images | conv_relu in | conv_bias r/right; in/Relu | conv_bias l/left; r/right/BiasAdd | Add Add l/left/BiasAdd |"
     "output",
     {.weight_bits = 4, .activation_bits = 4, .logits_bits = 6, .sums_bits = 8},
     {"in/weights_quant", "in/act_quant: 4", "r/right/weights_quant", "r/right/conv_quant: 6", "r/add_quant: 6",
      "l/left/weights_quant", "l/left/conv_quant: 6"}},
    {"TheNetworksOutputHasFewBitsOfLogits",
     "images | conv_relu in | conv_bias r/right; in/Relu | conv_bias l/left; r/right/BiasAdd | Add Add l/left/BiasAdd |"
     "output",
     {.weight_bits = 4, .activation_bits = 4, .logits_bits = 4, .sums_bits = 8},
     {"in/weights_quant", "in/act_quant: 4", "r/right/weights_quant", "r/right/conv_quant: 4", "r/add_quant: 4",
      "l/left/weights_quant", "l/left/conv_quant: 4"}},
};

TEST(ResidualSums, HaveTheirBits) { for_rows(kRows, testing::expect_rewrite); }

const std::vector<SecondRewrite> kSecond = {
    {"OtherBitsOfSums",
     kTwoBlocks,
     kSums,
     sums(7),
     {"sums_bits: in/act_quant has 8 bits, not 7", "sums_bits: one/b/conv_quant has 8 bits, not 7",
      "sums_bits: one/act_quant has 8 bits, not 7", "sums_bits: two/b/conv_quant has 8 bits, not 7"}},
    {"OtherBitsOfActivations",
     kTwoBlocks,
     kSums,
     {.weight_bits = 4, .activation_bits = 3, .sums_bits = 8},
     {"activation_bits: in/edge_quant has 4 bits, not 3", "activation_bits: one/a/act_quant has 4 bits, not 3",
      "activation_bits: one/edge_quant has 4 bits, not 3", "activation_bits: two/a/act_quant has 4 bits, not 3",
      "activation_bits: two/act_quant has 4 bits, not 3", "activation_bits: out/act_quant has 4 bits, not 3"}},
    {"NothingIsNarrowedAfterwards",
     kTwoBlocks,
     {.weight_bits = 4, .activation_bits = 4},
     kSums,
     {"sums_bits: in/act_quant has 4 bits, not 8", "sums_bits: one/b/conv_quant has 4 bits, not 8",
      "sums_bits: one/act_quant has 4 bits, not 8", "sums_bits: two/b/conv_quant has 4 bits, not 8"}},
};

TEST(ResidualSums, OtherBitsTheSecondTimeAreConflicts) { for_rows(kSecond, testing::expect_conflicts); }

TEST(ResidualSums, AddTensorsOfOneShapeThatAreNoParameters) {
  const ToyGraph stretched("images | conv_relu a | AvgPool half | AvgPool pixel; a/Relu | Add Add pixel | conv b");
  EXPECT_TRUE(ResidualSums(stretched.graph).empty());
  EXPECT_TRUE(ResidualSums(ToyGraph(kParameters).graph).empty());
  EXPECT_FALSE(ResidualSums(ToyGraph(kTwoBlocks).graph).empty());
}

TEST(ResidualSums, ALayerThatComesLaterReadsTheQuantizerThatIsThere) {
  ToyGraph toy(kTwoBlocks);
  create_training_graph(toy.graph, kSums);
  const Output late = toy.conv_bias("late", toy.graph.at("one/act_quant").output());
  toy.graph.set_outputs({toy.graph.outputs().front(), late});
  const RewriteReport report = create_training_graph(toy.graph, kSums);
  EXPECT_EQ(report.inserted, (Names{"late/weights_quant", "late/act_quant"}));
  EXPECT_TRUE(report.conflicts.empty());
  EXPECT_EQ(toy.input("late/Conv2D"), "one/edge_quant");
}

/// Every layer but the first reads 4 bits, every sum but the last reads 8, in both foldings.
TEST(ResidualSums, OfModels) {
  for (const std::string model : {"resnet20", "mobilenet_v2"})
    for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
      Graph graph;
      const Output images = layers::placeholder(graph, "images", {2, 32, 32, 3});
      graph.set_outputs({models::find_model(model).build(graph, images, {.outputs = 10, .width = 0.25})});
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
