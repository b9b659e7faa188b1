// Bits by layer from the options to the quantizers, and what the report says of them.

#include "quantize/rewrite/remarks.h"

#include <gtest/gtest.h>

#include <map>

#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::remarks_test {
namespace {

using testing::Names;
using testing::ToyGraph;

/// A chain and a residual block with a Concat behind.
ToyGraph small_net() {
  ToyGraph toy;
  layers::register_ops();
  register_ops();
  const Output x = toy.conv_relu("conv1", toy.images());
  const Output sum = layers::add(toy.graph, "block/Add", toy.conv_bias("block/conv", x), x);
  const Output relu = layers::relu(toy.graph, "block/Relu", sum);
  layers::concat(toy.graph, "joined", {relu, toy.conv("last", relu)});
  return toy;
}

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

std::string line(const RewriteReport& report, const std::string& layer) {
  for (const MatchReport& match : report.matches)
    if (match.layer == layer) return match.text;
  return "none";
}

/// But for that on float edges, which is not about bits.
Names notes(const RewriteReport& report) {
  Names notes;
  for (const std::string& remark : report.remarks)
    if (remark.find("left float") == std::string::npos) notes.push_back(remark);
  return notes;
}

TEST(LayerBitsInRewrite, EveryQuantizerOfALayerFollowsItsPattern) {
  ToyGraph toy = small_net();
  const RewriteReport report = create_training_graph(toy.graph, mixed());
  const std::map<std::string, std::int64_t> bits = {
      {"conv1/weights_quant", 4},      {"conv1/act_quant", 7},
      {"block/conv/weights_quant", 2}, {"block/conv/conv_quant", 3},
      {"block/act_quant", 3},          {"last/weights_quant", 8},
      {"last/act_quant", 5},           {"joined/activation_Concat_quant", 7}};
  EXPECT_EQ(report.inserted.size(), bits.size());
  for (const auto& [name, expected] : bits) {
    const FakeQuantAttributes& quantizer = toy.quantizer(name);
    const bool of_block = name.starts_with("block/");
    EXPECT_EQ(quantizer.bits, expected) << name;
    EXPECT_EQ(quantizer.symmetric, of_block) << name;
    EXPECT_EQ(quantizer.per_channel, name == "block/conv/weights_quant") << name;
    if (quantizer.range == RangeKind::kMovingAverage) {
      EXPECT_EQ(quantizer.ema_decay, of_block ? 0.5 : 0.999) << name;
    }
  }
  EXPECT_EQ(notes(report), Names{});
}

TEST(LayerBitsInRewrite, ThePostActivationBypassBelongsToItsLayer) {
  ToyGraph toy;
  const Output x = toy.images();
  layers::add(toy.graph, "b/Add", toy.conv_relu("b/conv", x), x);
  create_training_graph(toy.graph, {.layer_bits = {{.pattern = "b/conv", .activation_bits = 3}}});
  EXPECT_EQ(toy.quantizer("b/conv/act_quant").bits, 3);
  EXPECT_EQ(toy.quantizer("b/post_activation_bypass_quant").bits, 3);
  EXPECT_EQ(toy.quantizer("b/conv/weights_quant").bits, 8);
}

TEST(LayerBitsInRewrite, InputsHaveTheCommonBits) {
  ToyGraph toy;
  toy.conv("a", toy.images());
  create_training_graph(toy.graph, {.quantize_input = true, .layer_bits = {{.pattern = "*", .activation_bits = 3}}});
  EXPECT_EQ(toy.quantizer("images/input_quant").bits, 8);
  EXPECT_EQ(toy.quantizer("a/act_quant").bits, 3);
}

TEST(LayerBitsInRewrite, PerChannelCanBeSwitchedOffForALayer) {
  ToyGraph toy;
  toy.conv("b", toy.conv("a", toy.images()));
  const RewriteReport report =
      create_training_graph(toy.graph, {.per_channel = true, .layer_bits = {{.pattern = "a", .per_channel = false}}});
  EXPECT_FALSE(toy.quantizer("a/weights_quant").per_channel);
  EXPECT_TRUE(toy.quantizer("b/weights_quant").per_channel);
  EXPECT_EQ(line(report, "a/Conv2D"),
            "layer: weights a/weights -> a/weights_quant (per tensor), output a/Conv2D -> a/act_quant");
}

TEST(LayerBitsInRewrite, TwiceIsOnceAlsoForEvaluation) {
  for (const auto rewrite : {create_training_graph, create_eval_graph}) {
    ToyGraph toy = small_net();
    RewriteOptions options = mixed();
    options.layer_bits.insert(options.layer_bits.begin(), {.pattern = "nowhere", .weight_bits = 4});
    const std::string first = rewrite(toy.graph, options).text();
    const std::string once = graph_to_json(toy.graph);
    const std::string second = rewrite(toy.graph, options).text();
    EXPECT_EQ(graph_to_json(toy.graph), once);
    EXPECT_EQ(second.substr(second.find('\n')), first.substr(first.find('\n')));
  }
}

TEST(LayerBitsInRewrite, EvaluationKeepsTheBits) {
  ToyGraph trained = small_net();
  create_training_graph(trained.graph, mixed());
  create_eval_graph(trained.graph, mixed());
  ToyGraph fresh = small_net();
  create_eval_graph(fresh.graph, mixed());
  EXPECT_EQ(graph_to_json(trained.graph), graph_to_json(fresh.graph));
}

TEST(LayerBitsInRewrite, RefusedBitsLeaveTheGraphAlone) {
  ToyGraph toy = small_net();
  const std::uint64_t revision = toy.graph.revision();
  EXPECT_THROW(create_training_graph(toy.graph, {.layer_bits = {{.pattern = "a", .weight_bits = 1}}}), Error);
  EXPECT_EQ(toy.graph.revision(), revision);
}

TEST(LayerBitsInReport, ALayersLineNamesWhatIsItsOwn) {
  ToyGraph toy = small_net();
  const RewriteReport report = create_training_graph(toy.graph, mixed());
  EXPECT_EQ(line(report, "conv1/Conv2D"),
            "layer + bias + Relu + post-activation bypass: weights conv1/weights -> conv1/weights_quant (4 bits), "
            "output conv1/Relu -> conv1/act_quant, after the bypass block/Add -> no quantizer, a Relu follows");
  EXPECT_EQ(line(report, "block/conv/Conv2D"),
            "layer + bias + bypass + Relu: weights block/conv/weights -> block/conv/weights_quant (2 bits, symmetric, "
            "per channel), before the bypass block/conv/BiasAdd -> block/conv/conv_quant (3 bits, symmetric, decay "
            "0.5), output block/Relu -> block/act_quant (3 bits, symmetric, decay 0.5)");
  EXPECT_EQ(line(report, "last/Conv2D"),
            "layer: weights last/weights -> last/weights_quant, output last/Conv2D -> last/act_quant (5 bits)");
}

TEST(LayerBitsInReport, SymmetryIsNamedWhereItIsALayersOwn) {
  const auto report = [](RewriteOptions options, LayerBits bits) {
    ToyGraph toy;
    toy.conv("a", toy.images());
    bits.pattern = "a";
    options.layer_bits = {bits};
    return line(create_training_graph(toy.graph, options), "a/Conv2D");
  };
  const std::string weights = "layer: weights a/weights -> a/weights_quant", output = "output a/Conv2D -> a/act_quant";
  EXPECT_EQ(report({}, {.symmetric_weights = true}), weights + " (symmetric), " + output);
  EXPECT_EQ(report({.symmetric_weights = true}, {.symmetric = true}), weights + ", " + output + " (symmetric)");
  EXPECT_EQ(report({.symmetric_weights = true}, {.symmetric_weights = false}), weights + " (asymmetric), " + output);
  EXPECT_EQ(report({.symmetric = true}, {.symmetric = false, .symmetric_weights = true}),
            weights + ", " + output + " (asymmetric)");
}

TEST(LayerBitsInReport, UnusedPatternsAreNotes) {
  ToyGraph toy;
  toy.conv("conv2", toy.conv_relu("conv1", toy.images()));
  toy.conv("fixed", toy.images("other"), layers::constant(toy.graph, "c", {1, 1, 2, 2}, {1}));
  const RewriteReport report =
      create_training_graph(toy.graph, {.layer_bits = {{.pattern = "cnov1", .weight_bits = 4},
                                                       {.pattern = "x*", .weight_bits = 4},
                                                       {.pattern = "conv1", .weight_bits = 4},
                                                       {.pattern = "conv?", .weight_bits = 5},
                                                       {.pattern = "*2", .weight_bits = 4},
                                                       {.pattern = "fixed", .weight_bits = 4}}});
  EXPECT_EQ(notes(report),
            (Names{"bits of layers (`bits_config`): pattern \"cnov1\" is unused: it matches no layer; did "
                   "you mean \"conv1\"?",
                   "bits of layers (`bits_config`): pattern \"x*\" is unused: it matches no layer",
                   "bits of layers (`bits_config`): pattern \"*2\" is unused: it never comes first: "
                   "conv2/Conv2D goes to \"conv?\"",
                   "bits of layers (`bits_config`): pattern \"fixed\" is unused: it matches no quantized "
                   "layer: fixed/Conv2D was skipped (its "
                   "weights come from [Constant \"c\"], not from a Variable)"}));
  EXPECT_NE(report.text().find("\nnote: bits of layers (`bits_config`): pattern \"cnov1\" is unused"),
            std::string::npos);
}

TEST(LayerBitsInReport, LayersOutOfScopeDoNotUseAPattern) {
  ToyGraph toy;
  toy.conv("b", toy.conv("a", toy.images()));
  EXPECT_EQ(notes(create_training_graph(toy.graph, {.scope = "b", .layer_bits = {{.pattern = "a", .weight_bits = 4}}})),
            Names{"bits of layers (`bits_config`): pattern \"a\" is unused: it matches no quantized layer: "
                  "a/Conv2D was skipped (outside "
                  "scope \"b\")"});
}

TEST(LayerBitsInReport, SharedWeightsFollowTheFirstLayer) {
  const auto rewritten = [](const std::vector<LayerBits>& list) {
    ToyGraph toy;
    const Output weights = toy.filter("shared");
    toy.conv("b", layers::relu(toy.graph, "Relu", toy.conv("a", toy.images(), weights)),
             layers::identity(toy.graph, "read", weights));
    const RewriteReport report = create_training_graph(toy.graph, {.layer_bits = list});
    EXPECT_EQ(toy.quantizer("a/weights_quant").bits, 4);
    EXPECT_EQ(toy.graph.find("b/weights_quant"), nullptr);
    return notes(report);
  };
  EXPECT_EQ(rewritten({{.pattern = "a", .weight_bits = 4}, {.pattern = "b", .weight_bits = 6}}),
            Names{"bits of layers (`bits_config`): shared is shared: the settings of a/Conv2D "
                  "apply, those of b/Conv2D are ignored"});
  EXPECT_EQ(rewritten({{.pattern = "a", .weight_bits = 4}, {.pattern = "b", .weight_bits = 4, .activation_bits = 3}}),
            Names{})
      << "their outputs are not shared";
  EXPECT_EQ(rewritten({{.pattern = "a", .weight_bits = 4, .symmetric_weights = true},
                       {.pattern = "b", .weight_bits = 4, .symmetric = true}}),
            Names{})
      << "two ways to the same";
  EXPECT_EQ(
      rewritten({{.pattern = "a", .weight_bits = 4}, {.pattern = "b", .weight_bits = 4, .symmetric_weights = true}})
          .size(),
      1u);
}

TEST(LayerBitsInReport, ASharedOutputFollowsTheFirstLayer) {
  ToyGraph toy;
  const Output x = toy.images();
  layers::relu(toy.graph, "Relu", layers::add(toy.graph, "Add", toy.conv_bias("a", x), toy.conv_bias("b", x)));
  const std::string first = scope_of(find_layers(toy.graph, "").matches.front().layer->name());
  const std::string second = first == "a" ? "b" : "a";
  const RewriteReport report =
      create_training_graph(toy.graph, {.layer_bits = {{.pattern = second, .activation_bits = 4}}});
  EXPECT_EQ(toy.quantizer("act_quant").bits, 8);
  EXPECT_EQ(toy.quantizer(first + "/conv_quant").bits, 8);
  EXPECT_EQ(toy.quantizer(second + "/conv_quant").bits, 4);
  EXPECT_EQ(notes(report), Names{"bits of layers (`bits_config`): Relu is shared: the settings of " + first +
                                 "/Conv2D apply, those of " + second + "/Conv2D are ignored"});
}

}  // namespace
}  // namespace miniqat::quantize::remarks_test
