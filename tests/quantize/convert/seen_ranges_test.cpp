#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "tests/errors.h"

namespace miniqat::quantize::seen_ranges_test {
namespace {

using testing::error_of;
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

}  // namespace
}  // namespace miniqat::quantize::seen_ranges_test
