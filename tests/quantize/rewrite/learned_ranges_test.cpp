// What RewriteOptions::ranges makes of the quantizers that a rewrite inserts.

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/quantization.h"
#include "tests/errors.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::learned_ranges_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::ToyGraph;

ToyGraph two_layers() {
  layers::register_ops();
  register_ops();
  ToyGraph toy;
  toy.graph.set_outputs({toy.conv_bias("b", toy.conv_relu("a", toy.images()))});
  return toy;
}

RewriteOptions learned(int bits = 4) {
  return {.weight_bits = bits, .activation_bits = bits, .ranges = RangeChoice::kLearned, .logits_bits = bits};
}

const Variable::Attributes& variable_of(const Graph& graph, const std::string& name) {
  return graph.at(name).as<Variable>()->attributes();
}

TEST(LearnedRanges, WeightsAreSymmetricAndTheirEndsAreTrained) {
  ToyGraph toy = two_layers();
  create_training_graph(toy.graph, learned());
  const FakeQuantAttributes& weights = toy.quantizer("a/weights_quant");
  EXPECT_EQ(weights.range, RangeKind::kLearned);
  EXPECT_TRUE(weights.symmetric);
  EXPECT_TRUE(weights.narrow_range);
  EXPECT_EQ(toy.quantizer("a/act_quant").range, RangeKind::kLearned);
  EXPECT_FALSE(toy.quantizer("a/act_quant").symmetric);
  for (const char* end : {"a/weights_quant/min", "a/weights_quant/max", "a/act_quant/min", "a/act_quant/max"}) {
    EXPECT_TRUE(variable_of(toy.graph, end).trainable) << end;
    EXPECT_EQ(variable_of(toy.graph, end).update, VariableUpdateKind::kMultiplicative) << end;
  }
  EXPECT_EQ(toy.initial("a/act_quant/min"), 0) << "after a Relu, and a factor leaves it there";
  EXPECT_EQ(quantization_of(toy.graph).label(), "W4A4 learned symmetric weights");
}

TEST(LearnedRanges, AsymmetricWeights) {
  ToyGraph toy = two_layers();
  RewriteOptions options = learned();
  options.asymmetric_weights = true;
  options.layer_bits = {{.pattern = "b", .symmetric_weights = true}};
  create_training_graph(toy.graph, options);
  EXPECT_FALSE(toy.quantizer("a/weights_quant").symmetric);
  EXPECT_TRUE(toy.quantizer("b/weights_quant").symmetric);
  ToyGraph by_layer = two_layers();
  RewriteOptions one = learned();
  one.layer_bits = {{.pattern = "b", .symmetric_weights = false}};
  create_training_graph(by_layer.graph, one);
  EXPECT_TRUE(by_layer.quantizer("a/weights_quant").symmetric);
  EXPECT_FALSE(by_layer.quantizer("b/weights_quant").symmetric);
}

TEST(LearnedRanges, AutoGoesByTheBits) {
  ToyGraph toy = two_layers();
  create_training_graph(toy.graph, {.weight_bits = 5, .activation_bits = 4, .ranges = RangeChoice::kAuto});
  EXPECT_EQ(toy.quantizer("a/weights_quant").range, RangeKind::kLastValue);
  EXPECT_FALSE(toy.quantizer("a/weights_quant").symmetric);
  EXPECT_EQ(toy.quantizer("a/act_quant").range, RangeKind::kLearned);
  EXPECT_EQ(toy.quantizer("b/act_quant").range, RangeKind::kMovingAverage) << "logits, of 8 bits";
}

TEST(LearnedRanges, ByLayer) {
  const std::vector<LayerBits> list = layer_bits_from_json(R"({"a": {"ranges": "learned"}})", "bits.json");
  EXPECT_EQ(layer_bits_from_json(layer_bits_to_json(list).dump(), "again"), list);
  ToyGraph toy = two_layers();
  create_training_graph(toy.graph, {.layer_bits = list});
  EXPECT_EQ(toy.quantizer("a/weights_quant").range, RangeKind::kLearned);
  EXPECT_EQ(toy.quantizer("a/act_quant").range, RangeKind::kLearned);
  EXPECT_EQ(toy.quantizer("b/weights_quant").range, RangeKind::kLastValue);
  for (const char* wrong : {"\"trained\"", "true", "1", "null"})
    EXPECT_TRUE(
        mentions(error_of([&] { layer_bits_from_json(concat(R"({"a": {"ranges": )", wrong, "}}"), "bits.json"); }),
                 {"bits.json", "\"a\"", "ranges must be \"observed\", \"learned\" or \"auto\""}));
}

TEST(LearnedRanges, KnownRangesStayFixed) {
  ToyGraph toy;
  toy.graph.set_outputs({toy.conv_bias("b", layers::sigmoid(toy.graph, "sigmoid", toy.conv_bias("a", toy.images())))});
  create_training_graph(toy.graph, learned());
  EXPECT_EQ(toy.quantizer("sigmoid/activation_Sigmoid_quant").range, RangeKind::kFixed);
  EXPECT_FALSE(variable_of(toy.graph, "sigmoid/activation_Sigmoid_quant/max").trainable);
}

TEST(LearnedRanges, RewritingAgainChangesNothingAndOtherRangesAreConflicts) {
  ToyGraph toy = two_layers();
  create_training_graph(toy.graph, learned());
  const std::string once = graph_to_json(toy.graph);
  EXPECT_TRUE(create_training_graph(toy.graph, learned()).conflicts.empty());
  EXPECT_EQ(graph_to_json(toy.graph), once);
  RewriteOptions observed = learned();
  observed.ranges = RangeChoice::kObserved;
  observed.symmetric_weights = true;
  const RewriteReport again = create_training_graph(toy.graph, observed);
  ASSERT_EQ(again.conflicts.size(), 4u);
  EXPECT_EQ(again.conflicts[0].setting, "ranges");
  EXPECT_EQ(again.conflicts[0].text, "a/weights_quant has a learned range, not an observed one");
}

TEST(LearnedRanges, EvaluationGraphsTakeTheVariablesOfTraining) {
  ToyGraph trained = two_layers(), direct = two_layers();
  create_training_graph(trained.graph, learned());
  create_eval_graph(direct.graph, learned());
  Session training(trained.graph), evaluation(direct.graph);
  evaluation.restore(training.checkpoint(), Session::Restore::kVariables, "training");
  create_eval_graph(trained.graph, learned());
  EXPECT_EQ(graph_to_json(trained.graph), graph_to_json(direct.graph));
  EXPECT_TRUE(mentions(error_of([&] { create_training_graph(direct.graph, learned()); }), {"is_training is false"}));
}

TEST(LearnedRanges, CalibrationKnowsWeightsFromActivations) {
  ToyGraph toy = two_layers();
  create_eval_graph(toy.graph, learned(3));
  Session session(toy.graph);
  Calibrator calibrator(session, {.method = CalibrationMethod::kMinMax});
  const Tensor images(Shape{1, 4, 4, 2});
  for (std::int64_t i = 0; i < 32; ++i) images.data<float>()[i] = static_cast<float>(i % 7) - 3;
  calibrator.observe({{toy.graph.output_at("images"), images}});
  for (const CalibratedRange& range : calibrator.finish())
    EXPECT_EQ(range.is_weights, range.quantizer.ends_with("weights_quant")) << range.quantizer;
  const Tensor filter = session.variable("a/weights");
  float largest = 0;
  for (const float w : filter.values<float>()) largest = std::max(largest, std::abs(w));
  EXPECT_EQ(*session.variable("a/weights_quant/max").data<float>(), largest);
  EXPECT_EQ(*session.variable("a/weights_quant/min").data<float>(), -largest);
}

}  // namespace
}  // namespace miniqat::quantize::learned_ranges_test
