#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/convert/convert.h"
#include "quantize/convert/integer_layer.h"
#include "quantize/quantize.h"
#include "tests/errors.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/toy_graph.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::converted_ranges_test {
namespace {

using testing::error_of;
using testing::EvalNet;
using testing::mentions;

/// A convolution with Relu and a dense layer.
Graph classifier() {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 4, 4, 1});
  const auto weights = [&](const std::string& name, const Shape& shape) {
    return layers::variable(graph, name + "/weights", shape, Initializer::he_normal());
  };
  Output x = layers::conv2d(graph, "conv/Conv2D", images, weights("conv", {3, 3, 1, 2}));
  x = layers::relu(graph, "conv/Relu", x);
  x = layers::reshape(graph, "flat", x, {.shape = {2, -1}});
  graph.set_outputs({layers::matmul(graph, "fc/MatMul", x, weights("fc", {x.shape()[1], 3}))});
  return graph;
}

Tensor pictures(const Graph& graph) {
  Tensor batch(graph.at("images").output().shape());
  Initializer::truncated_normal(1).fill(batch, 3);
  return batch;
}

std::string refusal(const Graph& evaluation, Session& session) {
  return error_of([&] { convert(evaluation, session.variables()); });
}

struct Kind {
  RangeChoice ranges;
  const char* first;
};
constexpr Kind kKinds[] = {{RangeChoice::kObserved, "conv/weights_quant"},
                           {RangeChoice::kAllValues, "conv/weights_quant"},
                           {RangeChoice::kLearned, "conv/weights_quant"}};

TEST(SeenRanges, AGraphThatSawNothingIsRefused) {
  for (const Kind& kind : kKinds)
    for (const bool per_channel : {false, true}) {
      Graph evaluation = classifier();
      create_eval_graph(evaluation, {.ranges = kind.ranges, .per_channel = per_channel});
      Session session(evaluation);
      EXPECT_TRUE(mentions(refusal(evaluation, session),
                           {"[FakeQuant \"", kind.first, "has never seen a number", "[-6, 6]", "calibrate"}));
      Calibrator calibrator(session, {});
      calibrator.observe({{evaluation.output_at("images"), pictures(evaluation)}});
      calibrator.finish();
      EXPECT_EQ(refusal(evaluation, session), "");
    }
}

/// Weights alone do not help the tensors between the layers.
TEST(SeenRanges, ActivationsThatSawNothingAreRefused) {
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kAllValues}) {
    Graph evaluation = classifier();
    create_eval_graph(evaluation, {.ranges = ranges});
    Session session(evaluation);
    for (const char* end : {"min", "max"})
      for (const char* layer : {"conv", "fc"})
        session.set_variable(concat(layer, "/weights_quant/", end), Tensor::scalar(end[1] == 'i' ? -0.5f : 0.5f));
    EXPECT_TRUE(mentions(refusal(evaluation, session), {"conv/act_quant", "has never seen a number", "[0, 6]"}));
    // Ranges of one's own making are meant, though nothing was counted.
    for (const char* quantizer : {"conv/act_quant", "fc/act_quant"})
      session.set_variable(concat(quantizer, "/max"), Tensor::scalar(2.0f));
    EXPECT_EQ(refusal(evaluation, session), "");
  }
}

TEST(SeenRanges, OneTrainingStepIsEnough) {
  for (const Kind& kind : kKinds) {
    if (kind.ranges == RangeChoice::kLearned) continue;
    Graph training = classifier(), evaluation = classifier();
    create_training_graph(training, {.ranges = kind.ranges});
    create_eval_graph(evaluation, {.ranges = kind.ranges});
    Session session(training);
    session.run({.fetches = training.outputs(), .training = true},
                {{training.output_at("images"), pictures(training)}});
    EXPECT_EQ(refusal(evaluation, session), "");
  }
}

/// A count says more than the ends: zeros may well give the range of the initializer. Of checkpoints without a count
/// the ends decide.
TEST(SeenRanges, WhatWasCountedWasSeen) {
  Graph evaluation = classifier();
  create_eval_graph(evaluation);
  Session session(evaluation);
  Calibrator calibrator(session, {});
  calibrator.observe({{evaluation.output_at("images"), pictures(evaluation)}});
  calibrator.finish();
  session.set_variable("conv/act_quant/min", Tensor::scalar(0.0f));
  session.set_variable("conv/act_quant/max", Tensor::scalar(6.0f));
  EXPECT_EQ(refusal(evaluation, session), "");
  NamedTensors without_count = session.variables();
  without_count.erase("conv/act_quant/num_updates");
  EXPECT_NE(error_of([&] { convert(evaluation, without_count); }), "");
  without_count["conv/act_quant/max"] = Tensor::scalar(5.0f);
  EXPECT_EQ(error_of([&] { convert(evaluation, without_count); }), "");
}

/// A tensor of zeros moves no learned range.
TEST(SeenRanges, OneLearnedRangeMayStay) {
  Graph evaluation = classifier();
  create_eval_graph(evaluation, {.ranges = RangeChoice::kLearned});
  Session session(evaluation);
  EXPECT_NE(refusal(evaluation, session), "");
  session.set_variable("conv/act_quant/max", Tensor::scalar(2.0f));
  EXPECT_EQ(refusal(evaluation, session), "");
}

TEST(SeenRanges, WeightsMaySpanTheRangeOfTheInitializer) {
  Graph evaluation = classifier();
  create_eval_graph(evaluation);
  Session session(evaluation);
  Calibrator calibrator(session, {.method = CalibrationMethod::kMinMax});
  calibrator.observe({{evaluation.output_at("images"), pictures(evaluation)}});
  calibrator.finish();
  Tensor weights = session.variable("fc/weights").clone();
  for (const char* end : {"min", "max"})
    session.set_variable(concat("fc/weights_quant/", end), Tensor::scalar(end[1] == 'i' ? -6.0f : 6.0f));
  EXPECT_TRUE(mentions(refusal(evaluation, session), {"fc/weights_quant"}));
  weights.data<float>()[0] = 6;
  weights.data<float>()[1] = -6;
  session.set_variable("fc/weights", weights);
  EXPECT_EQ(refusal(evaluation, session), "");
}

TEST(SeenRanges, FixedRangesAreMeant) {
  Graph graph;
  const Output x = layers::placeholder(graph, "images", {1, 4});
  const FakeQuantAttributes fixed{.range = RangeKind::kFixed, .is_training = false};
  const Output weights = fake_quant(graph, "w_quant", layers::variable(graph, "w", {4, 2}), fixed);
  graph.set_outputs({fake_quant(graph, "quant", layers::matmul(graph, "MatMul", x, weights), fixed)});
  Session session(graph);
  EXPECT_EQ(refusal(graph, session), "");
}

/// Whether a network can become integers is known before its ranges are.
TEST(SeenRanges, RangesToComeAreTaken) {
  Graph evaluation = classifier();
  create_eval_graph(evaluation);
  Session session(evaluation);
  EXPECT_NO_THROW(convert(evaluation, session.variables(), {.ranges_to_come = true}));
}

// Nets with learned ranges, as integers.

/// A block with a bypass, a Sigmoid, whose range is known, a pool and a dense end.
Graph net() {
  const std::string chain =
      "images | conv_relu a | conv_bias b | Add Add a/Relu | Sigmoid Sigmoid | AvgPool pool | Reshape flat 3 -1 | "
      "dense fc 5 | bias fc | output";
  return std::move(
      testing::ToyGraph(chain, {.images = {3, 8, 8, 3}, .filter = 3, .channels = 8, .trains = true}).graph);
}

TEST(LearnedRangesConvert, TheIntegersAreThoseOfTheSimulation) {
  testing::expect_trained_integers(net(), {.ranges = RangeChoice::kLearned});
}

TEST(LearnedRangesConvert, AlsoWithAsymmetricWeights) {
  testing::expect_trained_integers(net(), {.ranges = RangeChoice::kLearned, .asymmetric_weights = true});
}

/// Multipliers are shifts, which is what the scales are for.
TEST(LearnedRangesConvert, ScalesThatArePowersOfTwoNeedOnlyShifts) {
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned}) {
    const RewriteOptions options = {.ranges = ranges, .scales = ScaleChoice::kPowerOfTwo, .per_channel = true};
    testing::expect_trained_integers(net(), options);
    const testing::TrainedNet trained = testing::train_briefly(net(), options);
    const integer::Model model = convert(trained.evaluation, trained.variables, {.input = testing::kPictures});
    std::size_t layers = 0;
    for (const integer::Operation& operation : model.operations) {
      const auto* layer = std::get_if<integer::Layer>(&operation.action);
      if (layer == nullptr) continue;
      // The first layer's pictures have the scale 1/255 of their data set.
      if (layers++ == 0) continue;
      for (const integer::Multiplier& multiplier : layer->multipliers) EXPECT_EQ(multiplier.mantissa, 1 << 30);
    }
    EXPECT_EQ(layers, 3u);
  }
}

TEST(LearnedRangesConvert, SymmetricWeightsHaveTheirZeroInTheMiddle) {
  const testing::TrainedNet trained =
      testing::train_briefly(net(), {.weight_bits = 4, .ranges = RangeChoice::kLearned});
  const integer::Model model = convert(trained.evaluation, trained.variables, {.input = testing::kPictures});
  int layers = 0;
  for (const integer::Operation& operation : model.operations)
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) {
      for (const std::int32_t zero_point : layer->weight_zero_points) EXPECT_EQ(zero_point, 8);
      ++layers;
    }
  EXPECT_EQ(layers, 3);
}

// Ranges so small that the product of two scales is no float32 number.

constexpr float kTiny = 1e-35f;

TEST(TinyRanges, ALayerKeepsItsMultiplier) {
  EvalNet net;
  net.input = {.scale = kTiny, .zero_point = 0, .bits = 8};
  const Output weights = net.weights("a", {3, 3, 3, 4});
  const Output y = layers::conv2d(net.graph, "a/Conv2D", net.images(), weights);
  const integer::Model model = net.convert(net.quantizer("q", y, {-2000 * kTiny, 2000 * kTiny}));
  const auto& layer = std::get<integer::Layer>(model.operations[0].action);
  const double output = model.tensor(model.output).grid.scale;
  EXPECT_NEAR(layer.multiplier(0).real(), double{kTiny} * layer.weight_scale(0) / output, 1e-6);
  EXPECT_GT(layer.multiplier(0).mantissa, 0);
}

TEST(TinyRanges, AProductKeepsItsMultiplier) {
  EvalNet net;
  net.input = {.scale = 1e-20f, .zero_point = 0, .bits = 8};
  const Output x = net.images();
  const integer::Model model = net.convert(net.quantizer("q", layers::mul(net.graph, "Mul", x, x), {0, 6.5e-36f}));
  EXPECT_NEAR(std::get<integer::Mul>(model.operations[0].action).multiplier.real(),
              1e-40 / double{model.tensor(model.output).grid.scale}, 1e-6);
}

/// As runtimes compute it.
TEST(TinyRanges, OtherRatiosAreThoseOfFloat32) {
  const float a = 1.0f / 255, b = 0.3f / 127, output = 6.0f / 255;
  EXPECT_EQ(scale_ratio(a, b, output), double{a * b / output});
  EXPECT_NEAR(scale_ratio(1e30f, 1e30f, 1e35f), 1e25, 1e19);
}

}  // namespace
}  // namespace miniqat::quantize::converted_ranges_test
