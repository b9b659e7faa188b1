// What a graph says of its quantization, and what a second rewrite finds otherwise than asked.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text/json.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/random_net.h"

namespace miniqat::quantize::quantization_test {
namespace {

using Json = nlohmann::ordered_json;

Graph net(const std::string& model = "lenet5") {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 28, 28, 1});
  graph.set_outputs({models::find_model(model).build(graph, images, {.outputs = 10, .width = 0.25})});
  return graph;
}

Graph rewritten(const RewriteOptions& options, const std::string& model = "lenet5") {
  Graph graph = net(model);
  create_training_graph(graph, options);
  return graph;
}

std::string label(const RewriteOptions& options, const std::string& model = "lenet5") {
  return quantization_of(rewritten(options, model)).label();
}

TEST(Quantization, IsReadFromTheGraph) {
  EXPECT_EQ(quantization_of(net()).label(), "float");
  EXPECT_TRUE(quantization_of(net()).bits().is_null());
  EXPECT_EQ(label({}), "W8A8");
  EXPECT_EQ(label({.weight_bits = 2, .activation_bits = 5}), "W2A5");
  EXPECT_EQ(label({.symmetric = true}), "W8A8 symmetric");
  EXPECT_EQ(label({.symmetric_weights = true}), "W8A8 symmetric weights");
  EXPECT_EQ(label({.weight_bits = 4, .per_channel = true}), "W4A8 per channel");
  EXPECT_EQ(label({.weight_bits = 2, .full_range_weights = true}), "W2A8 full range");
  EXPECT_EQ(label({.weight_bits = 2, .ranges = RangeChoice::kLearned, .full_range_weights = true}),
            "W2A8 learned symmetric weights full range");
  EXPECT_EQ(label({.bn_fold = BnFold::kSingle}), "W8A8") << "there is nothing to fold";
  EXPECT_EQ(label({.bn_fold = BnFold::kSingle}, "mobilenet_v1"), "W8A8 single");
  EXPECT_EQ(label({}, "mobilenet_v1"), "W8A8");
  const Quantization mixed = quantization_of(rewritten({.layer_bits = {{.pattern = "conv1", .weight_bits = 2}}}));
  EXPECT_EQ(mixed.label(), "W2-8A8 mixed");
  EXPECT_EQ(mixed.bits(), Json::parse(R"({"weights": [2, 8], "activations": 8})"));
}

TEST(Quantization, IsTheSameInEvaluation) {
  for (const char* model : {"lenet5", "mobilenet_v1", "resnet20"}) {
    const RewriteOptions options = {.weight_bits = 3, .activation_bits = 6, .per_channel = true, .quant_delay = 7};
    Graph graph = rewritten(options, model);
    const Quantization training = quantization_of(graph);
    EXPECT_EQ(training.delay, 7);
    create_eval_graph(graph, options);
    const Quantization evaluation = quantization_of(graph);
    EXPECT_EQ(evaluation.label(), training.label());
    EXPECT_EQ(evaluation.quantizers, training.quantizers);
    EXPECT_EQ(evaluation.delay, 0);
  }
}

std::vector<std::string> conflicting_settings(Graph& graph, const RewriteOptions& options, bool training = true) {
  const RewriteReport report = training ? create_training_graph(graph, options) : create_eval_graph(graph, options);
  std::vector<std::string> settings;
  for (const SettingConflict& conflict : report.conflicts)
    if (std::ranges::find(settings, conflict.setting) == settings.end()) settings.push_back(conflict.setting);
  std::ranges::sort(settings);
  return settings;
}

using Texts = std::vector<std::string>;

TEST(RewriteConflicts, NameEverySettingThatAGraphHasOtherwise) {
  const auto conflicts = [](const RewriteOptions& again, const RewriteOptions& first = {},
                            const std::string& model = "lenet5") {
    Graph graph = rewritten(first, model);
    return conflicting_settings(graph, again);
  };
  EXPECT_EQ(conflicts({.weight_bits = 4}), Texts{"weight_bits"});
  EXPECT_EQ(conflicts({.activation_bits = 4}), Texts{"activation_bits"});
  EXPECT_EQ(conflicts({.symmetric = true}), Texts{"symmetric"});
  EXPECT_EQ(conflicts({.symmetric_weights = true}), Texts{"symmetric_weights"});
  EXPECT_EQ(conflicts({.per_channel = true}), Texts{"per_channel"});
  EXPECT_EQ(conflicts({.quant_delay = 3}), Texts{"quant_delay"});
  EXPECT_EQ(conflicts({.ema_decay = 0.9}), Texts{"ema_decay"});
  EXPECT_EQ(conflicts({.layer_bits = {{.pattern = "conv1", .weight_bits = 2}}}), Texts{"bits_config"});
  EXPECT_EQ(conflicts({.bn_fold = BnFold::kSingle}, {}, "mobilenet_v1"), Texts{"bn_fold"});
  EXPECT_EQ(conflicts({.freeze_bn_delay = 5}, {}, "mobilenet_v1"), Texts{"freeze_bn_delay"});
  EXPECT_EQ(conflicts({}, {.weight_bits = 2, .activation_bits = 2}), (Texts{"activation_bits", "weight_bits"}));
}

TEST(RewriteConflicts, AreNoneForTheSameSettings) {
  for (const char* model : {"lenet5", "mobilenet_v2", "resnet20"})
    for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
      const RewriteOptions options = {.weight_bits = 3,
                                      .activation_bits = 5,
                                      .symmetric_weights = true,
                                      .per_channel = true,
                                      .quant_delay = 4,
                                      .freeze_bn_delay = 9,
                                      .bn_fold = fold,
                                      .quantize_input = true,
                                      .layer_bits = {{.pattern = "*1*", .weight_bits = 6}}};
      Graph graph = net(model);
      EXPECT_EQ(conflicting_settings(graph, options), Texts{});
      EXPECT_EQ(conflicting_settings(graph, options), Texts{}) << model;
      EXPECT_EQ(conflicting_settings(graph, options, false), Texts{}) << model;
      EXPECT_EQ(conflicting_settings(graph, options, false), Texts{}) << model;
    }
}

TEST(RewriteConflicts, AreNoneForRandomNetsRewrittenTwice) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Graph graph = testing::well_formed_net(seed);
    const RewriteOptions options = {.weight_bits = 4,
                                    .activation_bits = 6,
                                    .symmetric = seed % 3 == 0,
                                    .per_channel = seed % 2 == 0,
                                    .quantize_input = seed % 5 == 0};
    create_training_graph(graph, options);
    EXPECT_EQ(conflicting_settings(graph, options), Texts{}) << "seed " << seed;
  }
}

}  // namespace
}  // namespace miniqat::quantize::quantization_test
