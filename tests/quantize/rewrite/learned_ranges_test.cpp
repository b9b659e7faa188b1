// RewriteOptions::ranges: which quantizers get learned ranges.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "optim/sgd.h"
#include "quantize/quantizers.h"
#include "tests/errors.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::learned_ranges_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::ToyGraph;

constexpr auto kLearn = RangeChoice::kLearned;

/// Relu, a Sigmoid with its known range, a pool and a dense end.
ToyGraph net() {
  ToyGraph toy;
  layers::register_ops();
  register_ops();
  const Output x = toy.conv_relu("conv1", toy.images());
  const Output bounded = layers::sigmoid(toy.graph, "conv2/Sigmoid", toy.conv_bias("conv2", x));
  const Output pooled = layers::avg_pool(toy.graph, "pool", bounded, {.window = {2, 2}, .strides = {2, 2}});
  const Output flat = layers::reshape(toy.graph, "flat", pooled, {.shape = {1, 8}});
  const Output logits = layers::bias_add(
      toy.graph, "fc/BiasAdd",
      layers::matmul(toy.graph, "fc/MatMul", flat,
                     layers::variable(toy.graph, "fc/weights", {8, 3}, Initializer::truncated_normal(0.5))),
      layers::variable(toy.graph, "fc/biases", {3}));
  toy.graph.set_outputs({logits});
  return toy;
}

/// Of every quantizer: "learned", "learned symmetric", "moving_average", ...
using Kinds = std::map<std::string, std::string>;

Kinds kinds_of(const Graph& graph) {
  Kinds kinds;
  for (const Node* node : graph.nodes())
    if (const auto* quantizer = node->as<FakeQuant>())
      kinds[node->name()] = std::string(traits_of(quantizer->range).name) + (quantizer->symmetric ? " symmetric" : "");
  return kinds;
}

Kinds kinds(const RewriteOptions& options) {
  ToyGraph toy = net();
  create_training_graph(toy.graph, options);
  return kinds_of(toy.graph);
}

/// All quantizers of net(), whose activations and weights have these kinds.
Kinds all(const std::string& weights, const std::string& activations) {
  return {{"conv1/act_quant", activations},
          {"conv1/weights_quant", weights},
          {"conv2/act_quant", activations},
          {"conv2/weights_quant", weights},
          {"conv2/Sigmoid/activation_Sigmoid_quant", "fixed"},
          {"pool/activation_AvgPool_quant", activations},
          {"fc/act_quant", activations},
          {"fc/weights_quant", weights}};
}

TEST(LearnedRanges, ObservedIsTheDefault) {
  EXPECT_EQ(kinds({}), all("last_value", "moving_average"));
  EXPECT_EQ(kinds({.weight_bits = 2, .activation_bits = 2}), all("last_value", "moving_average"));
}

TEST(LearnedRanges, AllOrThoseOfFewBits) {
  EXPECT_EQ(kinds({.ranges = kLearn}), all("learned symmetric", "learned"));
  const auto by_bits = [](int weights, int activations) {
    return kinds({.weight_bits = weights, .activation_bits = activations, .ranges = RangeChoice::kAuto});
  };
  EXPECT_EQ(by_bits(8, 8), all("last_value", "moving_average"));
  EXPECT_EQ(by_bits(4, 5), all("learned symmetric", "moving_average"));
  // The logits have 8 bits where others are learned.
  Kinds few = all("last_value", "learned");
  few["fc/act_quant"] = "moving_average";
  EXPECT_EQ(by_bits(5, 4), few);
  few = all("learned symmetric", "learned");
  few["fc/act_quant"] = "moving_average";
  EXPECT_EQ(by_bits(2, 2), few);
}

TEST(LearnedRanges, WeightsAreSymmetricUnlessAskedOtherwise) {
  EXPECT_EQ(kinds({.ranges = kLearn, .asymmetric_weights = true}), all("learned", "learned"));
  EXPECT_EQ(kinds({.symmetric_weights = true, .ranges = kLearn, .asymmetric_weights = true}),
            all("learned symmetric", "learned"));
  Kinds symmetric = all("learned symmetric", "learned symmetric");
  symmetric["conv2/Sigmoid/activation_Sigmoid_quant"] = "fixed symmetric";
  EXPECT_EQ(kinds({.symmetric = true, .ranges = kLearn}), symmetric);
  EXPECT_EQ(kinds({.asymmetric_weights = true}), all("last_value", "moving_average")) << "observed ones are anyway";
}

TEST(LearnedRanges, LayersHaveTheirOwn) {
  Kinds expected = all("last_value", "moving_average");
  expected["conv1/weights_quant"] = "learned symmetric";
  expected["conv1/act_quant"] = "learned";
  EXPECT_EQ(kinds({.layer_bits = {{.pattern = "conv1", .ranges = kLearn}}}), expected);
  expected["conv1/weights_quant"] = "learned";
  EXPECT_EQ(kinds({.layer_bits = {{.pattern = "conv1", .symmetric_weights = false, .ranges = kLearn}}}), expected);
  expected = all("learned symmetric", "learned");
  expected["fc/weights_quant"] = "last_value";
  expected["fc/act_quant"] = "moving_average";
  const LayerBits observed = {.pattern = "fc", .ranges = RangeChoice::kObserved};
  EXPECT_EQ(kinds({.ranges = kLearn, .layer_bits = {observed}}), expected);
  EXPECT_EQ(kinds({.weight_bits = 4,
                   .activation_bits = 4,
                   .ranges = RangeChoice::kAuto,
                   .layer_bits = {{.pattern = "fc", .weight_bits = 8, .activation_bits = 8}}}),
            expected)
      << "auto goes by the layer's bits";
}

TEST(LearnedRanges, OptionsGoThroughJson) {
  const std::string text =
      R"({"a": {"ranges": "learned"}, "b": {"weight_bits": 2, "ranges": "auto"}, "c": {"ranges": "observed"}})";
  const std::vector<LayerBits> list = layer_bits_from_json(text, "bits.json");
  EXPECT_EQ(list, (std::vector<LayerBits>{{.pattern = "a", .ranges = kLearn},
                                          {.pattern = "b", .weight_bits = 2, .ranges = RangeChoice::kAuto},
                                          {.pattern = "c", .ranges = RangeChoice::kObserved}}));
  EXPECT_EQ(layer_bits_from_json(layer_bits_to_json(list).dump(), "again"), list);
  for (const std::string value : {"\"fixed\"", "\"Learned\"", "\"\"", "true", "null", "4", "[\"learned\"]"})
    EXPECT_TRUE(
        mentions(error_of([&] { layer_bits_from_json(R"({"a": {"ranges": )" + value + "}}", "bits.json"); }),
                 {"bits.json: pattern \"a\": ranges must be \"observed\", \"learned\", \"auto\" or \"all-values\"",
                  "not " + value}));
}

TEST(LearnedRanges, StartAtZeroWhereNothingIsBelow) {
  ToyGraph toy = net();
  create_training_graph(toy.graph, {.ranges = kLearn});
  EXPECT_EQ(toy.initial("conv1/act_quant/min"), 0);
  EXPECT_EQ(toy.initial("conv1/act_quant/max"), 6);
  EXPECT_EQ(toy.initial("conv1/weights_quant/min"), -6);
  for (const std::string end : {"/min", "/max"}) {
    const auto variable = [&](const std::string& name) { return *toy.graph.at(name + end).as<Variable>(); };
    EXPECT_TRUE(variable("conv1/act_quant").trainable);
    EXPECT_EQ(variable("conv1/act_quant").update, VariableUpdateKind::kMultiplicative);
    EXPECT_FALSE(variable("conv2/Sigmoid/activation_Sigmoid_quant").trainable) << "its range is known";
    EXPECT_EQ(variable("conv2/Sigmoid/activation_Sigmoid_quant").update, VariableUpdateKind::kAdditive);
  }
}

/// A loss, so that it trains.
void train(Graph& graph, Session& session, int steps) {
  const Output loss = graph.output_at("loss");
  for (int i = 0; i < steps; ++i) {
    Tensor images(Shape{1, 4, 4, 2});
    Initializer::truncated_normal(1).fill(images, static_cast<std::uint64_t>(i));
    session.train_step(loss, optim::Sgd({.learning_rate = 0.1, .ranges = {.learning_rate = 0.1}}),
                       {{graph.output_at("images"), images}});
  }
}

TEST(LearnedRanges, ZeroStaysAndTheRestMoves) {
  ToyGraph toy = net();
  layers::mean(toy.graph, "loss", toy.graph.outputs()[0], {.axes = {0, 1}});
  create_training_graph(toy.graph, {.weight_bits = 4, .activation_bits = 4, .ranges = kLearn, .per_channel = true});
  Session session(toy.graph, {.seed = 4});
  session.set_variable("fc/weights_quant/min", Tensor::from<float>({3}, {-1, -1, -1}));
  session.set_variable("fc/weights_quant/max", Tensor::from<float>({3}, {1, 1, 1}));
  session.set_variable("fc/act_quant/min", Tensor::scalar(-6.0f));
  train(toy.graph, session, 5);
  EXPECT_EQ(*session.variable("conv1/act_quant/min").data<float>(), 0);
  EXPECT_EQ(*session.variable("conv2/Sigmoid/activation_Sigmoid_quant/max").data<float>(), 15.0f / 16);
  const Tensor low = session.variable("fc/weights_quant/min"), high = session.variable("fc/weights_quant/max");
  for (int c = 0; c < 3; ++c) {
    EXPECT_NE(high.data<float>()[c], 1);
    EXPECT_NEAR(low.data<float>()[c], -high.data<float>()[c], 1e-6) << "symmetric";
  }
}

TEST(LearnedRanges, ASecondRewriteChangesNothing) {
  for (const auto rewrite : {create_training_graph, create_eval_graph})
    for (const RangeChoice ranges : {kLearn, RangeChoice::kAuto}) {
      ToyGraph toy = net();
      const RewriteOptions options = {.weight_bits = 4, .ranges = ranges, .per_channel = true, .quantize_input = true};
      const RewriteReport first = rewrite(toy.graph, options);
      EXPECT_EQ(first.text().find("learned"), std::string::npos) << "what all have is no layer's own";
      const std::string once = graph_to_json(toy.graph);
      EXPECT_EQ(graph_to_json(graph_from_json(once)), once);
      const RewriteReport second = rewrite(toy.graph, options);
      EXPECT_TRUE(second.inserted.empty());
      EXPECT_TRUE(second.conflicts.empty());
      EXPECT_EQ(graph_to_json(toy.graph), once);
    }
}

TEST(LearnedRanges, TheReportSaysWhichLayersDiffer) {
  ToyGraph toy = net();
  const RewriteReport report =
      create_training_graph(toy.graph, {.layer_bits = {{.pattern = "conv1", .ranges = kLearn}}});
  EXPECT_NE(report.text().find("learned range"), std::string::npos) << report.text();
  ToyGraph other = net();
  const RewriteReport reverse = create_training_graph(
      other.graph, {.ranges = kLearn, .layer_bits = {{.pattern = "conv1", .ranges = RangeChoice::kObserved}}});
  EXPECT_NE(reverse.text().find("moving average"), std::string::npos) << reverse.text();
}

TEST(LearnedRanges, LayersThatShareATensorAreNotedWhenTheyDiffer) {
  ToyGraph toy;
  const Output weights = toy.filter("weights");
  toy.conv("b", toy.conv("a", toy.images(), weights), weights);
  const RewriteReport report = create_training_graph(toy.graph, {.layer_bits = {{.pattern = "b", .ranges = kLearn}}});
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_TRUE(mentions(report.remarks[0], {"weights is shared: the settings of a/Conv2D apply"}));
}

std::vector<std::string> conflicts(const RewriteOptions& first, const RewriteOptions& second) {
  ToyGraph toy = net();
  create_training_graph(toy.graph, first);
  std::vector<std::string> settings;
  for (const SettingConflict& conflict : create_training_graph(toy.graph, second).conflicts)
    if (std::ranges::find(settings, conflict.setting) == settings.end()) settings.push_back(conflict.setting);
  std::ranges::sort(settings);
  return settings;
}

TEST(LearnedRanges, ConflictsNameTheSetting) {
  using Texts = std::vector<std::string>;
  const RewriteOptions learned = {.ranges = kLearn}, asymmetric = {.ranges = kLearn, .asymmetric_weights = true};
  EXPECT_EQ(conflicts({}, asymmetric), Texts{"ranges"});
  EXPECT_EQ(conflicts(asymmetric, {}), Texts{"ranges"});
  EXPECT_EQ(conflicts({}, learned), (Texts{"asymmetric_weights", "ranges"}));
  EXPECT_EQ(conflicts(learned, {}), (Texts{"ranges", "symmetric_weights"}));
  EXPECT_EQ(conflicts(learned, asymmetric), Texts{"asymmetric_weights"}) << "the flag that was given";
  EXPECT_EQ(conflicts(asymmetric, learned), Texts{"asymmetric_weights"});
  EXPECT_EQ(conflicts(asymmetric, {.symmetric_weights = true, .ranges = kLearn}), Texts{"symmetric_weights"});
  EXPECT_EQ(conflicts(learned, {.symmetric = true, .ranges = kLearn}), Texts{"symmetric"});
  EXPECT_EQ(conflicts(learned, {.ranges = kLearn, .layer_bits = {{.pattern = "fc", .ranges = RangeChoice::kObserved}}}),
            Texts{"bits_config"});
  EXPECT_EQ(conflicts(learned, {.ranges = RangeChoice::kAuto}), (Texts{"ranges", "symmetric_weights"}));
  EXPECT_EQ(conflicts(learned, {.weight_bits = 4, .ranges = kLearn}), Texts{"weight_bits"});
  EXPECT_EQ(conflicts(learned, {.ranges = kLearn, .quant_delay = 4}), Texts{"quant_delay"});
  EXPECT_EQ(conflicts(learned, {.ranges = kLearn, .ema_decay = 0.5}), Texts{}) << "nothing is averaged";
}

TEST(LearnedRanges, EvaluationOfTheTrainingGraphOrDirectly) {
  const RewriteOptions options = {.weight_bits = 4, .ranges = kLearn, .quant_delay = 6, .quantize_input = true};
  ToyGraph direct = net(), converted = net();
  create_eval_graph(direct.graph, options);
  create_training_graph(converted.graph, options);
  const Quantization training = quantization_of(converted.graph);
  EXPECT_EQ(training.label(), "W4A8 learned symmetric weights");
  EXPECT_EQ(training.delay, 6);
  Session session(converted.graph, {.seed = 3});
  session.set_variable("conv1/act_quant/max", Tensor::scalar(2.5f));
  const Safetensors checkpoint = session.checkpoint();
  EXPECT_FALSE(checkpoint.tensors.contains("conv1/act_quant/num_updates"));

  EXPECT_TRUE(create_eval_graph(converted.graph, options).inserted.empty());
  EXPECT_EQ(graph_to_json(converted.graph), graph_to_json(direct.graph));
  EXPECT_EQ(quantization_of(direct.graph).label(), training.label());
  Session evaluation(direct.graph);
  const auto report = evaluation.restore(checkpoint, Session::Restore::kVariables, "the training graph");
  EXPECT_TRUE(report.fresh.empty());
  EXPECT_TRUE(report.unused.empty());
  EXPECT_EQ(*evaluation.variable("conv1/act_quant/max").data<float>(), 2.5f);
}

TEST(LearnedRanges, AnEvaluationGraphDoesNotBecomeTrainingAgain) {
  ToyGraph toy = net();
  create_eval_graph(toy.graph, {.ranges = kLearn});
  EXPECT_TRUE(error_of([&] {
                require_observing(toy.graph, "net.json");
              }).starts_with("net.json: [FakeQuant \"conv1/weights_quant\"] was rewritten for evaluation"));
  EXPECT_THROW(create_training_graph(toy.graph, {.ranges = kLearn}), Error);
}

TEST(LearnedRanges, TheLabelSaysSoIfOneIs) {
  const auto label = [](const RewriteOptions& options) {
    ToyGraph toy = net();
    create_training_graph(toy.graph, options);
    return quantization_of(toy.graph).label();
  };
  EXPECT_EQ(label({.ranges = kLearn}), "W8A8 learned symmetric weights");
  EXPECT_EQ(label({.ranges = kLearn, .asymmetric_weights = true, .per_channel = true}), "W8A8 per channel learned");
  EXPECT_EQ(label({.ranges = RangeChoice::kAuto}), "W8A8");
  EXPECT_EQ(label({.layer_bits = {{.pattern = "fc", .symmetric_weights = false, .ranges = kLearn}}}), "W8A8 learned");
}

}  // namespace
}  // namespace miniqat::quantize::learned_ranges_test
