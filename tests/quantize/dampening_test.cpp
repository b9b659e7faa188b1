// Oscillation dampening: its gradient is that of the penalty, it grows on a cosine, and both backends agree.

#include <gtest/gtest.h>

#include <cmath>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/gradient_check.h"
#include "tests/quantize/fold/folding_outcome.h"

namespace miniqat::quantize::dampening_test {
namespace {

/// x of a quantizer by itself; the gradient of its sum, which is 1 inside the range, and what dampening adds.
struct Quantizer {
  Graph graph;
  Output x;
  Output y;

  explicit Quantizer(FakeQuantAttributes attributes, const Shape& shape = {37, 5}) {
    x = layers::variable(graph, "x", shape);
    y = fake_quant(graph, "q", x, attributes, {-0.7, 0.7}, attributes.per_channel ? 1 : 0);
    graph.set_outputs({y});
  }

  struct Found {
    Tensor y;
    Tensor gradient;
  };
  Found step(Session& session) {
    RunResult result = session.run({.fetches = {y}, .gradients_of = y, .gradient_targets = {x}, .training = true}, {});
    return {result.fetched[0], result.gradients[0]};
  }
};

FakeQuantAttributes dampened(RangeKind range, bool per_channel, double dampening, std::int64_t steps = 0) {
  return {.bits = 3,
          .narrow_range = true,
          .symmetric = true,
          .per_channel = per_channel,
          .range = range,
          .dampening = dampening,
          .dampening_steps = steps};
}

/// lambda * ||y - clip(x)||^2 of one element, y held.
double penalty(double x, double y, double end, double lambda) {
  const double clipped = std::clamp(x, -end, end);
  return lambda * (y - clipped) * (y - clipped);
}

TEST(Dampening, AddsTheGradientOfThePenalty) {
  constexpr double kLambda = 0.25, kStep = 1e-5, kEnd = 0.7;
  for (const bool per_channel : {false, true}) {
    Quantizer net(dampened(RangeKind::kLearned, per_channel, kLambda));
    Session session(net.graph, {.backend = Backend::kReference, .precision = DType::kFloat64});
    testing::number_variables(net.graph, session);
    const auto [y, gradient] = net.step(session);
    const Tensor x = session.variable("x");
    int inside = 0;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const double at = x.data<double>()[i], rounded = y.data<double>()[i];
      if (std::abs(std::abs(at) - kEnd) < 2 * kStep) continue;
      const double straight_through = std::abs(at) < kEnd ? 1 : 0;
      const double slope =
          (penalty(at + kStep, rounded, kEnd, kLambda) - penalty(at - kStep, rounded, kEnd, kLambda)) / (2 * kStep);
      EXPECT_NEAR(gradient.data<double>()[i], straight_through + slope, 1e-8) << at;
      inside += std::abs(slope) > 1e-3;
    }
    EXPECT_GT(inside, 50);
  }
}

TEST(Dampening, LeavesOutputAndRangeAlone) {
  for (const RangeKind range : {RangeKind::kLearned, RangeKind::kLastValue}) {
    Quantizer with(dampened(range, false, 3)), without(dampened(range, false, 0));
    const auto outcome = [&](Quantizer& net) {
      Session session(net.graph);
      testing::number_variables(net.graph, session);
      RunRequest request{.fetches = {net.y}, .gradients_of = net.y, .training = true};
      if (range == RangeKind::kLearned) request.gradient_targets = {net.graph.at("q/max").output()};
      RunResult result = session.run(request, {});
      result.fetched.push_back(range == RangeKind::kLearned ? result.gradients[0] : session.variable("q/max").clone());
      return result.fetched;
    };
    const std::vector<Tensor> a = outcome(with), b = outcome(without);
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_EQ(testing::difference(a[k], b[k], 0), "") << k;
  }
}

TEST(Dampening, FastIsTheReference) {
  for (const RangeKind range : {RangeKind::kLearned, RangeKind::kLastValue})
    for (const bool per_channel : {false, true})
      for (const Shape& shape : {Shape{37, 5}, Shape{1, 1}, Shape{3, 3, 7, 64}, Shape{129, 130}}) {
        Quantizer net(dampened(range, per_channel, 0.5), shape);
        Session fast(net.graph), reference(net.graph, {.backend = Backend::kReference});
        for (Session* session : {&fast, &reference}) testing::number_variables(net.graph, *session);
        for (int step = 0; step < 2; ++step) {
          const Quantizer::Found got = net.step(fast), wanted = net.step(reference);
          EXPECT_EQ(testing::difference(got.y, wanted.y, 1e-6), "");
          EXPECT_EQ(testing::difference(got.gradient, wanted.gradient, 1e-5), "") << shape.elements();
        }
      }
}

TEST(Dampening, GrowsOnACosineOverTheStepsThatQuantize) {
  FakeQuantAttributes attributes = dampened(RangeKind::kLearned, false, 8, 4);
  attributes.delay = 3;
  Quantizer net(attributes);
  Session session(net.graph);
  testing::number_variables(net.graph, session);
  const float x = session.variable("x").data<float>()[0];
  ASSERT_LT(std::abs(x), 0.7f);
  for (const double expected : {0., 0., 8 * 0.14644660940672624, 4., 8 * 0.8535533905932737, 8., 8.}) {
    const auto [y, gradient] = net.step(session);
    EXPECT_NEAR(gradient.data<float>()[0], 1 + 2 * expected * (x - y.data<float>()[0]), 1e-4);
  }
  EXPECT_EQ(session.variable("q/num_dampened").data<float>()[0], 5);
}

TEST(Dampening, IsForWeightsAndStaysInEvaluation) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle, BnFold::kLate})
    for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned}) {
      testing::FoldingNet net({});
      create_training_graph(net.graph, {.ranges = ranges, .per_channel = true, .bn_fold = fold});
      EXPECT_EQ(dampen_weights(net.graph, 0.5, 10), 1);
      const auto attributes = [&](const char* name) { return *net.graph.at(name).as<FakeQuant>(); };
      EXPECT_EQ(attributes("net/block/weights_quant").dampening, 0.5);
      EXPECT_EQ(attributes("net/block/weights_quant").dampening_steps, 10);
      EXPECT_EQ(attributes("net/block/act_quant").dampening, 0);
      create_eval_graph(net.graph);
      EXPECT_EQ(attributes("net/block/weights_quant").dampening, 0.5) << "for the checkpoint's sake";
    }
}

}  // namespace
}  // namespace miniqat::quantize::dampening_test
