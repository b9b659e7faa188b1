// What is noted of settings by layer and of layers that reach no output.

#include "quantize/rewrite/remarks.h"

#include "tests/quantize/rewrite/rewrite_case.h"

namespace miniqat::quantize::remarks_test {
namespace {

using testing::Names;
using testing::RewriteCase;
using testing::ToyGraph;

const std::string kBits = "note: bits of layers (`bits_config`): ";
/// Two layers, of which the second reads a copy of the weights that they share.
const std::string kShared =
    "[1,1,2,2]shared; images | conv a shared | Relu Relu; shared | Identity read; Relu | conv b read";
const Names kSharedQuantizers = {"a/weights_quant: 4", "a/act_quant", "b/act_quant"};
/// Two layers; a third, and a sum behind it, that nothing reads.
const std::string kDead = "images | conv_relu a | conv_relu b | output; a/Relu | conv_relu dead | Add dead/Add b/Relu";
const std::string kDeadLayer =
    "note: [Conv2D \"dead/Conv2D\"] reaches no output: left out of training, quantization, counts and exports";

/// A residual sum of what "in" and "b" give.
const std::string kSum =
    "images | conv_relu in | conv_relu a | conv_bias b | Add Add in/Relu | Relu Relu | conv_bias out | output";

const std::vector<RewriteCase> kRows = {
    {"UnusedPatterns",
     "images | conv_relu conv1 | conv conv2; other | conv fixed =[1,1,2,2]c",
     {.layer_bits = {{.pattern = "cnov1", .weight_bits = 4},
                     {.pattern = "x*", .weight_bits = 4},
                     {.pattern = "conv1", .weight_bits = 4},
                     {.pattern = "conv?", .weight_bits = 5},
                     {.pattern = "*2", .weight_bits = 4},
                     {.pattern = "fixed", .weight_bits = 4}}},
     {"conv1/weights_quant: 4", "conv1/act_quant", "conv2/weights_quant: 5", "conv2/act_quant"},
     {kBits + "pattern \"cnov1\" is unused: it matches no layer; did you mean \"conv1\"?",
      kBits + "pattern \"x*\" is unused: it matches no layer",
      kBits + "pattern \"*2\" is unused: it never comes first: conv2/Conv2D goes to \"conv?\"",
      kBits + "pattern \"fixed\" is unused: it matches no quantized layer: fixed/Conv2D was skipped (its weights come "
              "from [Constant \"c\"], not from a Variable)",
      "note: 1 edge into layers left float: c -> fixed/Conv2D (its weights come from [Constant \"c\"], not from a "
      "Variable)"}},
    {"LayersOutOfScopeDoNotUseAPattern",
     "images | conv a | conv b",
     {.scope = "b", .layer_bits = {{.pattern = "a", .weight_bits = 4}}},
     {"b/weights_quant", "b/act_quant"},
     {kBits + "pattern \"a\" is unused: it matches no quantized layer: a/Conv2D was skipped (outside scope \"b\")",
      "note: 2 edges into layers left float: a/weights -> a/Conv2D (outside scope \"b\"), ..."}},
    {"SharedWeightsFollowTheFirstLayer",
     kShared,
     {.layer_bits = {{.pattern = "a", .weight_bits = 4}, {.pattern = "b", .weight_bits = 6}}},
     kSharedQuantizers,
     {kBits + "shared is shared: the settings of a/Conv2D apply, those of b/Conv2D are ignored"},
     true},
    // Their outputs are not shared.
    {"OutputsOfLayersThatShareWeights",
     kShared,
     {.layer_bits = {{.pattern = "a", .weight_bits = 4}, {.pattern = "b", .weight_bits = 4, .activation_bits = 3}}},
     kSharedQuantizers,
     {},
     true},
    {"TwoWaysToSharedSymmetry",
     kShared,
     {.layer_bits = {{.pattern = "a", .weight_bits = 4, .symmetric_weights = true},
                     {.pattern = "b", .weight_bits = 4, .symmetric = true}}},
     kSharedQuantizers,
     {},
     true},
    {"OneOfTwoIsSymmetric",
     kShared,
     {.layer_bits = {{.pattern = "a", .weight_bits = 4},
                     {.pattern = "b", .weight_bits = 4, .symmetric_weights = true}}},
     kSharedQuantizers,
     {kBits + "shared is shared: the settings of a/Conv2D apply, those of b/Conv2D are ignored"},
     true},
    {"ASharedOutputFollowsTheFirstLayer",
     "images | conv_bias a; images | conv_bias b; a/BiasAdd | Add Add b/BiasAdd | Relu Relu",
     {.layer_bits = {{.pattern = "b", .activation_bits = 4}}},
     {"a/weights_quant", "a/conv_quant: 8", "act_quant: 8", "b/weights_quant", "b/conv_quant: 4"},
     {kBits + "Relu is shared: the settings of a/Conv2D apply, those of b/Conv2D are ignored"}},
    {"IdleSettingsOfPatterns",
     "images | conv_relu a | conv_relu b",
     {.layer_bits = {{.pattern = "a", .activation_bits = 4, .sums_bits = 8, .ema_decay = 0.5},
                     {.pattern = "b", .ema_decay = 0.5, .ranges = RangeChoice::kLearned}}},
     {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant"},
     {kBits + "pattern \"a\": sums_bits has no effect: no output of its layers is part of a residual sum",
      kBits + "pattern \"b\": ema_decay has no effect: no range of its layers' outputs is an average"}},
    // "in" changes nothing, "b" keeps more bits for its part of the sum.
    {"SumsAsWideAsActivations",
     kSum,
     {.activation_bits = 4, .layer_bits = {{.pattern = "in", .sums_bits = 4}, {.pattern = "b", .sums_bits = 6}}},
     {"in/weights_quant", "in/act_quant: 4", "a/weights_quant", "a/act_quant: 4", "b/weights_quant", "b/conv_quant: 6",
      "act_quant: 4", "out/weights_quant", "out/act_quant: 4"},
     {kBits + "pattern \"in\": sums_bits has no effect: the outputs of its layers have no fewer bits"}},
    {"SumsThatAPatternKeepsNarrow",
     kSum,
     {.activation_bits = 4, .sums_bits = 8, .layer_bits = {{.pattern = "in", .sums_bits = 4}}},
     {"in/weights_quant", "in/act_quant: 4", "a/weights_quant", "a/act_quant: 4", "b/weights_quant", "b/conv_quant: 8",
      "act_quant: 4", "out/weights_quant", "out/act_quant: 4"}},
    {"BitsOfAnInputWithoutQuantizer",
     "images | conv_relu a",
     {.input_bits = 4},
     {"a/weights_quant", "a/act_quant"},
     {"note: `input_bits` has no effect without `quantize_input`"}},
    {"BitsOfAnInput",
     "images | conv_relu a",
     {.input_bits = 4, .quantize_input = true},
     {"images/input_quant: 4", "a/weights_quant", "a/act_quant"}},
    {"UnusedLayersGetNoQuantizer",
     kDead,
     {},
     {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant"},
     {kDeadLayer, "dead/Conv2D: skipped: reaches no output"}},
    // Nobody can say that what a graph without outputs does is of no use.
    {"LayersAreUsedInAGraphWithoutOutputs",
     "images | conv_relu a | conv_relu b; a/Relu | conv_relu dead | Add dead/Add b/Relu",
     {},
     {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant", "dead/post_activation_bypass_quant",
      "dead/weights_quant", "dead/act_quant"}},
    {"ALossUsesWhatItReads",
     "images | conv_relu a | output | conv_relu auxiliary | Square square | Mean mean | loss",
     {},
     {"a/weights_quant", "a/act_quant", "auxiliary/weights_quant", "auxiliary/act_quant"}},
};

TEST(Remarks, AreMade) { for_rows(kRows, testing::expect_rewrite); }

TEST(Remarks, AreNotesOfTheText) {
  ToyGraph toy("images | conv conv1");
  const std::string text =
      create_training_graph(toy.graph, {.layer_bits = {{.pattern = "cnov1", .weight_bits = 4}}}).text();
  EXPECT_NE(text.find("\n" + kBits + "pattern \"cnov1\" is unused"), std::string::npos) << text;
}

TEST(UnusedLayers, AreNoFloatEdgesToStrictAndGetNoQuantizerInEvaluation) {
  ToyGraph toy(kDead);
  EXPECT_EQ(testing::strict_refusal(toy.graph), "");
  const RewriteReport report = create_eval_graph(toy.graph);
  EXPECT_EQ(report.inserted, (Names{"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant"}));
  EXPECT_EQ(report.remarks.size(), 1u);
}

}  // namespace
}  // namespace miniqat::quantize::remarks_test
