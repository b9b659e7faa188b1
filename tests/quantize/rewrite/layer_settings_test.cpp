// The settings that each quantizer gets: bits, those of the ends, and those of layers.
#include "quantize/rewrite/layer_settings.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/text/error.h"
#include "tests/errors.h"
#include "tests/quantize/rewrite/rewrite_case.h"

namespace miniqat::quantize::layer_settings_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::Names;
using testing::RewriteCase;
using testing::SecondRewrite;
using testing::ToyGraph;

constexpr auto kAuto = RangeChoice::kAuto;
constexpr auto kLearned = RangeChoice::kLearned;

const std::string kThree = "images | conv_relu a | conv_relu b | conv_bias c | output";

/// The quantizers of kThree, of so many bits.
Names three(const std::array<int, 6>& bits) {
  constexpr const char* kNames[] = {"a/weights_quant", "a/act_quant",     "b/weights_quant",
                                    "b/act_quant",     "c/weights_quant", "c/act_quant"};
  Names lines;
  for (std::size_t i = 0; i < bits.size(); ++i) lines.push_back(concat(kNames[i], ": ", bits[i]));
  return lines;
}

const std::vector<LayerBits> kAll34 = {{.pattern = "*", .weight_bits = 3, .activation_bits = 4}};

const std::vector<RewriteCase> kEnds = {
    {"ObservedRangesTreatTheLogitsLikeAllOthers",
     kThree,
     {.weight_bits = 4, .activation_bits = 4},
     three({4, 4, 4, 4, 4, 4})},
    {"FewBitsGiveTheLogits8",
     kThree,
     {.weight_bits = 2, .activation_bits = 3, .ranges = kAuto},
     three({2, 3, 2, 3, 2, 8})},
    {"LearnedRangesGiveTheLogits8",
     kThree,
     {.weight_bits = 2, .activation_bits = 3, .ranges = kLearned},
     three({2, 3, 2, 3, 2, 8})},
    {"WhereThatWouldBeFewerTheyStay",
     kThree,
     {.activation_bits = 12, .ranges = kLearned},
     three({8, 12, 8, 12, 8, 12})},
    {"WhatIsObservedStays", kThree, {.activation_bits = 5, .ranges = kAuto}, three({8, 5, 8, 5, 8, 5})},
    {"LogitsBits", kThree, {.weight_bits = 2, .activation_bits = 2, .logits_bits = 5}, three({2, 2, 2, 2, 2, 5})},
    {"LogitsBitsOfLearnedRanges",
     kThree,
     {.weight_bits = 2, .activation_bits = 2, .ranges = kLearned, .logits_bits = 5},
     three({2, 2, 2, 2, 2, 5})},
    {"EndsBits", kThree, {.weight_bits = 2, .activation_bits = 2, .ends_bits = 7}, three({7, 2, 2, 2, 7, 7})},
    {"EndsBitsAndLogitsBits",
     kThree,
     {.weight_bits = 2, .activation_bits = 2, .logits_bits = 4, .ends_bits = 7},
     three({7, 2, 2, 2, 7, 4})},
    // Once a file that names the last layer silently took the effect of both.
    {"AFileNamesTheLastLayer", kThree, {.layer_bits = kAll34}, three({3, 4, 3, 4, 3, 4})},
    {"AFileNamesTheLastLayerLearned", kThree, {.ranges = kLearned, .layer_bits = kAll34}, three({3, 4, 3, 4, 3, 4})},
    {"LogitsBitsBeforeAFile", kThree, {.logits_bits = 6, .layer_bits = kAll34}, three({3, 4, 3, 4, 3, 6})},
    {"LogitsBitsBeforeAFileLearned",
     kThree,
     {.ranges = kLearned, .logits_bits = 6, .layer_bits = kAll34},
     three({3, 4, 3, 4, 3, 6})},
    {"BothBeforeAFile", kThree, {.logits_bits = 6, .ends_bits = 7, .layer_bits = kAll34}, three({7, 4, 3, 4, 7, 6})},
    {"BothBeforeAFileLearned",
     kThree,
     {.ranges = kLearned, .logits_bits = 6, .ends_bits = 7, .layer_bits = kAll34},
     three({7, 4, 3, 4, 7, 6})},
    {"EndsBitsBeforeAFile", kThree, {.ends_bits = 7, .layer_bits = kAll34}, three({7, 4, 3, 4, 7, 7})},
    {"EndsBitsBeforeAFileLearned",
     kThree,
     {.ranges = kLearned, .ends_bits = 7, .layer_bits = kAll34},
     three({7, 4, 3, 4, 7, 7})},
    {"LogitsBitsEqualToActivationBitsComeBeforeAFile",
     kThree,
     {.logits_bits = 8, .layer_bits = {{.pattern = "c", .weight_bits = 2, .activation_bits = 2}}},
     three({8, 8, 8, 8, 2, 8})},
    {"OneLayerIsFirstAndLast",
     "images | conv_relu only | output",
     {.weight_bits = 2, .activation_bits = 2, .ends_bits = 8},
     {"only/weights_quant: 8", "only/act_quant: 8"}},
    {"BranchesHaveTheirOwnEnds",
     "images | conv_relu left; images | conv_relu right | Add sum left/Relu | conv_bias one | output;"
     "sum | conv_bias two | output",
     {.weight_bits = 2, .activation_bits = 2, .ends_bits = 8},
     {"left/weights_quant: 8", "left/act_quant: 2", "post_activation_bypass_quant: 2", "right/weights_quant: 8",
      "right/act_quant: 2", "one/weights_quant: 8", "one/act_quant: 8", "two/weights_quant: 8", "two/act_quant: 8"}},
    // A batch norm that is folded for training brings a convolution for its statistics, which is nobody's neighbour.
    {"FoldedBatchNormsChangeNothingAboutTheEnds",
     "images | conv a | batch_norm a | Relu a/Relu | conv b | batch_norm b | Relu b/Relu | conv_bias c | output",
     {.weight_bits = 3, .activation_bits = 3, .ends_bits = 8},
     three({8, 3, 3, 3, 8, 8})},
    {"FoldedOnceTheyDoNotEither",
     "images | conv a | batch_norm a | Relu a/Relu | conv b | batch_norm b | Relu b/Relu | conv_bias c | output",
     {.weight_bits = 3, .activation_bits = 3, .ends_bits = 8, .bn_fold = BnFold::kSingle},
     three({8, 3, 3, 3, 8, 8})},
};

const std::string kPreprocessed =
    "images | Sub Sub =[]mean | Mul Mul =[]factor | Sigmoid Sigmoid | conv_relu a | AvgPool Pool | conv_bias b | "
    "output";
/// A residual block, a concat, a dense end and a loss: something for every part of the rewrite.
const std::string kSmallNet =
    "images | conv_relu conv1 | conv_bias block/conv | Add block/Add conv1/Relu | Relu block/Relu |"
    "Concat joined conv1/Relu | Reshape flat 1 64 | dense fc 3 | bias fc | output | loss";
/// A chain and a residual block with a Concat behind.
const std::string kMixedNet =
    "images | conv_relu conv1 | conv_bias block/conv | Add block/Add conv1/Relu | Relu block/Relu | conv last;"
    "block/Relu | Concat joined last/Conv2D";

RewriteOptions mixed() {
  return {.weight_bits = 8,
          .activation_bits = 7,
          .layer_bits = {{.pattern = "conv1", .weight_bits = 4},
                         {.pattern = "block/*",
                          .weight_bits = 2,
                          .activation_bits = 3,
                          .ema_decay = 0.5,
                          .symmetric = true,
                          .per_channel = true},
                         {.pattern = "*", .activation_bits = 5}}};
}

/// The quantizers of kSmallNet, with these words on those of weights and on the others.
Names small_net(const std::string& weights, const std::string& activations) {
  Names lines;
  for (const char* name :
       {"conv1/weights_quant", "conv1/act_quant", "block/conv/weights_quant", "block/conv/conv_quant",
        "block/act_quant", "fc/weights_quant", "fc/act_quant", "joined/activation_Concat_quant"})
    lines.push_back(concat(name, ": ", std::string(name).ends_with("weights_quant") ? weights : activations));
  return lines;
}

const std::vector<RewriteCase> kOptions = {
    {"OptionsReachEveryQuantizer",
     kSmallNet,
     {.symmetric = true, .quant_delay = 7, .ema_decay = 0.9},
     small_net("symmetric delay=7 decay=0.9 training per_tensor", "symmetric delay=7 decay=0.9 training per_tensor")},
    {"SymmetricIncludesTheWeights",
     kSmallNet,
     {.symmetric = true, .symmetric_weights = true},
     small_net("symmetric", "symmetric")},
    {"SymmetricWeightsLeaveActivationsAsTheyAre",
     kSmallNet,
     {.symmetric_weights = true, .per_channel = true},
     small_net("symmetric per_channel", "asymmetric per_tensor")},
    {"FullRangeWeights",
     kThree,
     {.weight_bits = 2, .full_range_weights = true},
     {"a/weights_quant: 2 wide", "a/act_quant: wide", "b/weights_quant: wide", "b/act_quant: wide",
      "c/weights_quant: wide", "c/act_quant: wide"}},
    {"WhatIsMadeOfThePicturesBeforeLayersHas8Bits",
     kPreprocessed,
     {.weight_bits = 4, .activation_bits = 4},
     {"a/weights_quant: 4", "a/act_quant: 4", "b/weights_quant: 4", "b/act_quant: 4", "Mul/activation_Mul_quant: 8",
      "Sigmoid/activation_Sigmoid_quant: 8", "Pool/activation_AvgPool_quant: 4"}},
    {"WhereThatWouldBeFewerItHasThoseOfActivations",
     kPreprocessed,
     {.activation_bits = 12},
     {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant", "Mul/activation_Mul_quant: 12",
      "Sigmoid/activation_Sigmoid_quant: 12", "Pool/activation_AvgPool_quant: 12"}},
    {"ItHasNoMoreThanAQuantizedInput",
     kPreprocessed,
     {.activation_bits = 4, .quantize_input = true},
     {"images/input_quant: 4", "a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant",
      "Mul/activation_Mul_quant: 4", "Sigmoid/activation_Sigmoid_quant: 4", "Pool/activation_AvgPool_quant: 4"}},
    {"EveryQuantizerOfALayerFollowsItsPattern",
     kMixedNet,
     mixed(),
     {"conv1/weights_quant: 4 asymmetric per_tensor", "conv1/act_quant: 7 asymmetric decay=0.999",
      "block/conv/weights_quant: 2 symmetric per_channel", "block/conv/conv_quant: 3 symmetric decay=0.5",
      "block/act_quant: 3 symmetric decay=0.5", "last/weights_quant: 8 asymmetric per_tensor",
      "last/act_quant: 5 asymmetric decay=0.999", "joined/activation_Concat_quant: 7 asymmetric decay=0.999"},
     {"conv1/Conv2D: matched: layer + bias + Relu + post-activation bypass: weights conv1/weights -> "
      "conv1/weights_quant (4 bits), "
      "output conv1/Relu -> conv1/act_quant, after the bypass block/Add -> no quantizer, a Relu follows",
      "block/conv/Conv2D: matched: layer + bias + bypass + Relu: weights block/conv/weights -> "
      "block/conv/weights_quant (2 bits, symmetric, "
      "per channel), before the bypass block/conv/BiasAdd -> block/conv/conv_quant (3 bits, symmetric, decay "
      "0.5), output block/Relu -> block/act_quant (3 bits, symmetric, decay 0.5)",
      "last/Conv2D: matched: layer: weights last/weights -> last/weights_quant, output last/Conv2D -> last/act_quant "
      "(5 bits)"}},
    {"ThePostActivationBypassBelongsToItsLayer",
     "images | conv_relu b/conv | Add b/Add images",
     {.layer_bits = {{.pattern = "b/conv", .activation_bits = 3}}},
     {"b/conv/weights_quant: 8", "b/conv/act_quant: 3", "b/post_activation_bypass_quant: 3"}},
    {"InputsHaveTheCommonBits",
     "images | conv a",
     {.quantize_input = true, .layer_bits = {{.pattern = "*", .activation_bits = 3}}},
     {"images/input_quant: 8", "a/weights_quant: 8", "a/act_quant: 3"}},
    {"PerChannelCanBeSwitchedOffForALayer",
     "images | conv a | conv b",
     {.per_channel = true, .layer_bits = {{.pattern = "a", .per_channel = false}}},
     {"a/weights_quant: per_tensor", "a/act_quant", "b/weights_quant: per_channel", "b/act_quant"},
     {"a/Conv2D: matched: layer: weights a/weights -> a/weights_quant (per tensor), output a/Conv2D -> a/act_quant"}},
    {"ALayersSymmetricWeights",
     "images | conv a",
     {.layer_bits = {{.pattern = "a", .symmetric_weights = true}}},
     {"a/weights_quant: symmetric", "a/act_quant: asymmetric"},
     {"a/Conv2D: matched: layer: weights a/weights -> a/weights_quant (symmetric), output a/Conv2D -> a/act_quant"}},
    {"ALayersSymmetricOutput",
     "images | conv a",
     {.symmetric_weights = true, .layer_bits = {{.pattern = "a", .symmetric = true}}},
     {"a/weights_quant: symmetric", "a/act_quant: symmetric"},
     {"a/Conv2D: matched: layer: weights a/weights -> a/weights_quant, output a/Conv2D -> a/act_quant (symmetric)"}},
    {"ALayersAsymmetricWeights",
     "images | conv a",
     {.symmetric_weights = true, .layer_bits = {{.pattern = "a", .symmetric_weights = false}}},
     {"a/weights_quant: asymmetric", "a/act_quant: asymmetric"},
     {"a/Conv2D: matched: layer: weights a/weights -> a/weights_quant (asymmetric), output a/Conv2D -> a/act_quant"}},
    {"ALayersAsymmetricOutput",
     "images | conv a",
     {.symmetric = true, .layer_bits = {{.pattern = "a", .symmetric = false, .symmetric_weights = true}}},
     {"a/weights_quant: symmetric", "a/act_quant: asymmetric"},
     {"a/Conv2D: matched: layer: weights a/weights -> a/weights_quant, output a/Conv2D -> a/act_quant (asymmetric)"}},
    // Of the weights the layer's setting says nothing.
    {"AnAsymmetricOutputLeavesWeightsAsTheyAre",
     "images | conv a",
     {.symmetric_weights = true, .layer_bits = {{.pattern = "a", .symmetric = false}}},
     {"a/weights_quant: symmetric", "a/act_quant: asymmetric"}},
    {"TheFirstPatternOfALayerDecides",
     "images | conv a | conv b | conv other",
     {.weight_bits = 5,
      .activation_bits = 6,
      .per_channel = true,
      .ema_decay = 0.5,
      .layer_bits = {{.pattern = "a", .weight_bits = 2, .symmetric = true, .per_channel = false},
                     {.pattern = "?", .activation_bits = 3, .ema_decay = 0.9}}},
     {"a/weights_quant: 2 per_tensor", "a/act_quant: 6 symmetric decay=0.5", "b/weights_quant: 5 per_channel",
      "b/act_quant: 3 asymmetric decay=0.9", "other/weights_quant: 5 per_channel",
      "other/act_quant: 6 asymmetric decay=0.5"}},
    {"TheScopeLimitsLayersAndActivations",
     "[1,1,2,2]shared; images | conv net/a shared | Relu net/a/Relu | conv net/ab shared | Relu net/ab/Relu | "
     "conv_bias net/a/deep | Relu elsewhere/Relu",
     {.scope = "net/a"},
     {"shared > net/a/weights_quant > net/a/Conv2D:1", "net/a/act_quant", "net/a/deep/weights_quant"},
     {"note: 2 edges into layers left float: shared -> net/ab/Conv2D (outside scope \"net/a\"), ..."}},
    {"ASlashAtTheEndOfTheScopeDoesNotMatter",
     "[1,1,2,2]shared; images | conv net/a shared | Relu net/a/Relu | conv net/ab shared | Relu net/ab/Relu | "
     "conv_bias net/a/deep | Relu elsewhere/Relu",
     {.scope = "net/a/"},
     {"shared > net/a/weights_quant > net/a/Conv2D:1", "net/a/act_quant", "net/a/deep/weights_quant"},
     {"note: 2 edges into layers left float: shared -> net/ab/Conv2D (outside scope \"net/a/\"), ..."}},
    {"AScopeWithoutLayersIsNoted",
     kSmallNet,
     {.scope = "conv"},
     {},
     {"note: no layer is in scope \"conv\"",
      "note: 5 edges into layers left float: conv1/weights -> conv1/Conv2D (outside scope \"conv\"), ..."}},
    {"FreezingWhatIsNotThereIsNoted",
     kThree,
     {.freeze_bn_delay = 3},
     three({8, 8, 8, 8, 8, 8}),
     {"note: `freeze_bn_delay` has no effect: no batch norm trains here"}},
};

TEST(LayerSettings, BitsOfTheEnds) { for_rows(kEnds, testing::expect_rewrite); }
TEST(LayerSettings, ReachTheQuantizers) { for_rows(kOptions, testing::expect_rewrite); }

const std::vector<SecondRewrite> kSecond = {
    {"OtherSettings",
     kSmallNet,
     {.weight_bits = 4, .quant_delay = 5},
     {.weight_bits = 8, .symmetric = true, .per_channel = true},
     {"per_channel", "quant_delay", "symmetric", "weight_bits"}},
    {"TheFlagThatComesBeforeAPattern",
     kThree,
     {.layer_bits = kAll34},
     {.logits_bits = 6, .ends_bits = 7, .layer_bits = kAll34},
     {"ends_bits: a/weights_quant has 3 bits, not 7", "ends_bits: c/weights_quant has 3 bits, not 7",
      "logits_bits: c/act_quant has 4 bits, not 6"}},
    {"AnotherWidth",
     kThree,
     {.weight_bits = 4, .activation_bits = 4, .logits_bits = 6, .ends_bits = 8},
     {.weight_bits = 4, .activation_bits = 4, .logits_bits = 5, .ends_bits = 7},
     {"ends_bits: a/weights_quant has 8 bits, not 7", "ends_bits: c/weights_quant has 8 bits, not 7",
      "logits_bits: c/act_quant has 6 bits, not 5"}},
    {"FullRangeWeights",
     kThree,
     {.weight_bits = 2, .full_range_weights = true},
     {.weight_bits = 2},
     {"full_range_weights: a/weights_quant has all integers, not a narrow range",
      "full_range_weights: b/weights_quant has all integers, not a narrow range",
      "full_range_weights: c/weights_quant has all integers, not a narrow range"}},
};

TEST(LayerSettings, OthersTheSecondTimeAreConflicts) { for_rows(kSecond, testing::expect_conflicts); }

TEST(LayerSettings, WhatIsOutOfRangeIsRefusedAndLeavesTheGraphAlone) {
  ToyGraph toy(kSmallNet);
  const std::uint64_t revision = toy.graph.revision();
  const auto refuses = [&](const RewriteOptions& options, const Names& parts) {
    Graph empty;
    EXPECT_TRUE(mentions(error_of([&] { options.check(); }), parts));
    EXPECT_TRUE(mentions(error_of([&] { create_training_graph(toy.graph, options); }), parts));
    EXPECT_TRUE(mentions(error_of([&] { create_eval_graph(empty, options); }), parts)) << "nothing is to be quantized";
  };
  refuses({.weight_bits = 1}, {"weight_bits", "1"});
  refuses({.weight_bits = 17}, {"weight_bits", "17"});
  refuses({.activation_bits = 1}, {"activation_bits"});
  refuses({.activation_bits = -8}, {"activation_bits", "-8"});
  refuses({.quant_delay = -1}, {"quant_delay"});
  refuses({.freeze_bn_delay = -1}, {"freeze_bn_delay"});
  for (const double decay : {-0.1, 1.0, 1.5, std::nan(""), std::numeric_limits<double>::infinity()})
    refuses({.ema_decay = decay}, {"ema_decay"});
  refuses({.logits_bits = 1}, {"logits_bits must be 2 to 16, not 1"});
  refuses({.ends_bits = 17}, {"ends_bits must be 2 to 16, not 17"});
  refuses({.layer_bits = {{.pattern = "a", .weight_bits = 1}}}, {"\"a\"", "weight_bits"});
  for (const int bits : {1, 17})
    refuses({.activation_bits = 4, .sums_bits = bits}, {concat("sums_bits must be 2 to 16, not ", bits)});
  refuses({.activation_bits = 4, .sums_bits = 3}, {"sums_bits must be 4 or more, the bits of activations, not 3"});
  refuses({.activation_bits = 4, .layer_bits = {{.pattern = "a", .sums_bits = 3}}},
          {"pattern \"a\"", "sums_bits must be 4 or more, the bits of activations, not 3"});
  refuses({.layer_bits = {{.pattern = "a", .activation_bits = 5, .sums_bits = 4}}},
          {"pattern \"a\"", "sums_bits must be 5 or more"});
  refuses({.layer_bits = {{.pattern = "a", .sums_bits = 17}}}, {"sums_bits must be 2 to 16"});
  EXPECT_EQ(toy.graph.revision(), revision);
  EXPECT_NO_THROW((RewriteOptions{.weight_bits = 2, .activation_bits = 16, .ema_decay = 0}.check()));
}

}  // namespace
}  // namespace miniqat::quantize::layer_settings_test
