// RewriteOptions::ranges kAllValues: activations whose range holds all values so far.

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "quantize/quantizers.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::all_values_test {
namespace {

using testing::ToyGraph;

constexpr auto kAllValues = RangeChoice::kAllValues;
const RewriteOptions kOptions = {.weight_bits = 4, .activation_bits = 4, .ranges = kAllValues};

ToyGraph net() {
  ToyGraph toy;
  layers::register_ops();
  register_ops();
  const Output x = toy.conv_relu("conv1", toy.images());
  const Output bounded = layers::sigmoid(toy.graph, "conv2/Sigmoid", toy.conv_bias("conv2", x));
  toy.graph.set_outputs({toy.conv_relu("conv3", bounded)});
  return toy;
}

std::string all_text(const std::vector<SettingConflict>& conflicts) {
  std::string text;
  for (const SettingConflict& conflict : conflicts) text += conflict.setting + ": " + conflict.text + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(AllValues, AreForActivationsWhateverTheirBits) {
  for (const int bits : {2, 8}) {
    ToyGraph toy = net();
    create_training_graph(toy.graph, {.weight_bits = bits, .activation_bits = bits, .ranges = kAllValues});
    EXPECT_EQ(toy.quantizer("conv1/weights_quant").range, RangeKind::kLastValue);
    EXPECT_EQ(toy.quantizer("conv1/act_quant").range, RangeKind::kAllValues);
    EXPECT_EQ(toy.quantizer("conv1/act_quant").bits, bits);
    EXPECT_EQ(toy.quantizer("conv2/Sigmoid/activation_Sigmoid_quant").range, RangeKind::kFixed) << "known";
    EXPECT_EQ(toy.quantizer("conv3/act_quant").bits, bits) << "logits as all others";
  }
}

TEST(AllValues, GraphsKeepThemAndTheRewriteIsIdempotent) {
  ToyGraph toy = net();
  const RewriteReport first = create_training_graph(toy.graph, kOptions);
  EXPECT_EQ(first.text().find("all values"), std::string::npos) << "what all have is no layer's own";
  const std::string once = graph_to_json(toy.graph);
  EXPECT_NE(once.find("\"range\": \"all_values\""), std::string::npos) << once;
  EXPECT_EQ(graph_to_json(graph_from_json(once)), once);
  const RewriteReport second = create_training_graph(toy.graph, kOptions);
  EXPECT_TRUE(second.inserted.empty());
  EXPECT_EQ(all_text(second.conflicts), "");
  EXPECT_EQ(graph_to_json(toy.graph), once);
  EXPECT_EQ(quantizer_text(toy.quantizer("conv1/act_quant")), "4 bits, range of all values");
}

TEST(AllValues, ConflictsNameBothKinds) {
  const auto conflicts = [](RewriteOptions first, RewriteOptions second) {
    first.weight_bits = first.activation_bits = second.weight_bits = second.activation_bits = 4;
    ToyGraph toy = net();
    create_training_graph(toy.graph, first);
    return all_text(create_training_graph(toy.graph, second).conflicts);
  };
  EXPECT_EQ(conflicts({.ranges = kAllValues}, {}),
            "ranges: conv1/act_quant has a range of all values, not a moving average\n"
            "ranges: conv2/act_quant has a range of all values, not a moving average\n"
            "ranges: conv3/act_quant has a range of all values, not a moving average\n");
  EXPECT_TRUE(has(conflicts({}, {.ranges = kAllValues}),
                  "ranges: conv1/act_quant has a moving average, not a range of all values\n"));
  const std::string learned = conflicts({.ranges = kAllValues}, {.ranges = RangeChoice::kLearned});
  EXPECT_TRUE(has(learned, "ranges: conv1/act_quant has a range of all values, not a learned range\n"));
  EXPECT_TRUE(has(learned, "ranges: conv1/weights_quant has a last value, not a learned range\n"));
  EXPECT_EQ(conflicts({.ranges = kAllValues}, {.ranges = kAllValues, .ema_decay = 0.5}), "") << "nothing is averaged";
}

TEST(AllValues, ByLayer) {
  const std::vector<LayerBits> bits = layer_bits_from_json(R"({"conv1": {"ranges": "all-values"}})", "bits.json");
  EXPECT_EQ(layer_bits_from_json(layer_bits_to_json(bits).dump(), "again"), bits);
  ToyGraph toy = net();
  const RewriteReport report = create_training_graph(toy.graph, {.layer_bits = bits});
  EXPECT_EQ(toy.quantizer("conv1/act_quant").range, RangeKind::kAllValues);
  EXPECT_EQ(toy.quantizer("conv3/act_quant").range, RangeKind::kMovingAverage);
  EXPECT_TRUE(has(report.text(), "conv1/act_quant (range of all values)\n")) << report.text();
}

TEST(AllValues, LayersThatShareWeightsAgree) {
  ToyGraph toy;
  const Output images = toy.images(), filter = toy.filter("weights");
  toy.conv("b", toy.conv("a", images, filter), filter);
  const RewriteReport report =
      create_training_graph(toy.graph, {.layer_bits = {{.pattern = "b", .ranges = kAllValues}}});
  EXPECT_TRUE(report.remarks.empty()) << "both take the last value of the shared weights";
  EXPECT_EQ(toy.quantizer("b/act_quant").range, RangeKind::kAllValues);
}

TEST(AllValues, EvaluationOfTheTrainingGraphOrDirectly) {
  ToyGraph direct = net(), converted = net();
  create_eval_graph(direct.graph, kOptions);
  create_training_graph(converted.graph, kOptions);
  create_eval_graph(converted.graph, kOptions);
  EXPECT_EQ(graph_to_json(converted.graph), graph_to_json(direct.graph));
}

}  // namespace
}  // namespace miniqat::quantize::all_values_test
