// Training with folded batch norms: a net is rewritten between two steps of a session that goes on; and where a batch
// norm degenerates, training goes on with finite numbers and finds its way back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/engine/session.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/gradient_check.h"
#include "tests/quantize/fold/batch_norm_classifier.h"
#include "tests/quantize/fold/folding_outcome.h"
#include "tests/quantize/fold/folding_ways.h"

namespace miniqat::quantize::fold_training_test {
namespace {

using testing::BatchNormClassifier;
using testing::difference;
using testing::FoldingCase;
using testing::FoldingNet;

void expect_finite(Session& session) {
  for (const auto& [name, value] : session.variables()) {
    if (value.dtype() != DType::kFloat32) continue;
    EXPECT_TRUE(std::ranges::all_of(value.values<float>(), [](float x) { return std::isfinite(x); })) << name;
  }
}

/// Every loss is finite, or train_step throws.
std::vector<float> train(BatchNormClassifier& net, Session& session, const Feeds& feeds, int steps = 100) {
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(session.train_step(net.loss, BatchNormClassifier::optimizer(), feeds));
  expect_finite(session);
  return losses;
}

std::vector<float> train(BatchNormClassifier& net, Session& session, int steps) {
  return train(net, session, net.batch(), steps);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::ranges::equal(std::span(static_cast<const std::byte*>(a.raw()), a.bytes()),
                                                    std::span(static_cast<const std::byte*>(b.raw()), b.bytes()));
}

class FoldTraining : public ::testing::TestWithParam<testing::FoldingWay> {
 protected:
  // On such a small net threads would do nothing but wait for each other.
  FoldTraining() { set_thread_count(1); }
  BnFold mode() const { return GetParam().fold; }
  bool per_channel() const { return GetParam().per_channel; }
  RewriteOptions options(std::int64_t delay = 0) const {
    return {.per_channel = per_channel(), .quant_delay = delay, .bn_fold = mode()};
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, FoldTraining, ::testing::ValuesIn(testing::folding_ways()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(FoldTraining, KeepsValuesAndOptimizerState) {
  BatchNormClassifier net;
  Session session(net.graph);
  train(net, session, 5);
  const Safetensors before = session.checkpoint();
  const RewriteReport report = create_training_graph(net.graph, options(0));
  EXPECT_EQ(report.inserted.size(), 7u) << report.text();
  const Safetensors after = session.checkpoint();
  ASSERT_TRUE(before.tensors.contains("optimizer:momentum/conv/gamma"));
  for (const auto& [name, value] : before.tensors) {
    ASSERT_TRUE(after.tensors.contains(name)) << name;
    EXPECT_TRUE(same_bits(after.tensors.at(name), value)) << name;
  }
  std::vector<std::string> fresh;
  for (const auto& [name, value] : after.tensors) {
    if (before.tensors.contains(name)) continue;
    fresh.push_back(name);
    const bool starts = name.ends_with("/min") || name.ends_with("/max") || name.ends_with("/num_updates");
    EXPECT_TRUE(starts) << name;
  }
  for (const char* name : {"conv/weights_quant/min", "conv/weights_quant/max", "dw/act_quant/max",
                           "dw/act_quant/num_updates", "fc/weights_quant/min"})
    EXPECT_TRUE(std::ranges::count(fresh, name) == 1) << name;
  EXPECT_EQ(session.variable("dw/act_quant/max").data<float>()[0], 6);
  EXPECT_EQ(session.variable("dw/act_quant/num_updates").data<float>()[0], 0);
  EXPECT_EQ(session.step(), 5);
  EXPECT_EQ(session.quantization_step(), 0) << "it counts from the rewrite";
}

TEST_P(FoldTraining, GoesOnQuantized) {
  BatchNormClassifier net;
  Session session(net.graph);
  const std::vector<float> before = train(net, session, 8);
  create_training_graph(net.graph, options(0));
  const std::vector<float> after = train(net, session, 40);
  EXPECT_LT(before.back(), before.front());
  EXPECT_NEAR(after.front(), before.back(), 0.3) << "no jump";
  EXPECT_LT(after.back(), 0.5 * before.back());
  EXPECT_EQ(session.step(), 48);
  EXPECT_EQ(session.quantization_step(), 40);
  EXPECT_EQ(session.variable("dw/act_quant/num_updates").data<float>()[0], 40);
}

/// With the quantizers off, rewriting may not be felt: not in the velocities either.
TEST_P(FoldTraining, WithoutQuantizersGoesOnAsIfNothingHadHappened) {
  BatchNormClassifier net;
  BatchNormClassifier twin;
  Session session(net.graph);
  Session untouched(twin.graph);
  train(net, session, 5);
  train(twin, untouched, 5);
  create_training_graph(net.graph, options(1000));
  const std::vector<float> losses = train(net, session, 5);
  const std::vector<float> wanted = train(twin, untouched, 5);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(losses[i], wanted[i], 1e-4) << i;
  const Safetensors got = session.checkpoint();
  for (const auto& [name, value] : untouched.checkpoint().tensors) {
    if (value.dtype() != DType::kFloat32) continue;
    EXPECT_EQ(difference(got.tensors.at(name), value, 1e-3), "") << name;
  }
}

/// Freezing and evaluation, too, happen to a session that goes on.
TEST_P(FoldTraining, FreezesAndIsEvaluatedInPlace) {
  BatchNormClassifier net;
  Session session(net.graph);
  train(net, session, 8);
  RewriteOptions freezing = options(0);
  freezing.freeze_bn_delay = 21;
  create_training_graph(net.graph, freezing);
  const std::vector<float> moving = train(net, session, 20);
  const Tensor statistics = session.variable("dw/moving_variance").clone();
  const std::vector<float> frozen = train(net, session, 20);
  EXPECT_TRUE(same_bits(session.variable("dw/moving_variance"), statistics));
  EXPECT_LT(frozen.back(), moving.front());

  const auto logits = [&] { return session.run({.fetches = {net.graph.outputs()[0]}}, net.batch()).fetched[0]; };
  const Tensor of_training_graph = logits();
  create_eval_graph(net.graph, freezing);
  EXPECT_EQ(net.graph.find("dw/BatchNorm") != nullptr, freezing.bn_fold == BnFold::kLate);
  // A rounding that falls otherwise moves a logit by a step of the quantizer.
  EXPECT_EQ(difference(logits(), of_training_graph, 0.02), "");
}

void set_all(Session& session, const std::string& name, float value) {
  std::ranges::fill(session.variable(name).values<float>(), value);
}

float element(Session& session, const std::string& name, int i) { return session.variable(name).data<float>()[i]; }

/// In each layer one gamma at 0, and not along the same path: where nothing but a constant comes in there is nothing to
/// learn. Relu must let something through for the channel to be missed at all.
void silence_channels(Session& session) {
  for (const char* beta : {"conv/beta", "dw/beta"}) set_all(session, beta, 0.5f);
  session.variable("conv/gamma").data<float>()[1] = 0;
  session.variable("dw/gamma").data<float>()[2] = 0;
}

void expect_awake(Session& session) {
  EXPECT_GT(std::abs(element(session, "conv/gamma", 1)), 1e-3);
  EXPECT_GT(std::abs(element(session, "dw/gamma", 2)), 1e-3);
}

TEST_P(FoldTraining, GammaZeroInOneChannel) {
  BatchNormClassifier net;
  create_training_graph(net.graph, options());
  Session session(net.graph);
  silence_channels(session);
  const std::vector<float> losses = train(net, session, net.batch());
  EXPECT_LT(losses.back(), 0.8f * losses.front());
  // With a single convolution and one range for all channels the silent one's weights round to zero, in training as
  // in evaluation: nothing is left to learn gamma from.
  if (mode() == BnFold::kTf || per_channel()) expect_awake(session);
}

TEST_P(FoldTraining, GammaZeroInOneChannelBeforeQuantization) {
  BatchNormClassifier net;
  create_training_graph(net.graph, options(1000));
  Session session(net.graph);
  silence_channels(session);
  train(net, session, net.batch());
  expect_awake(session);
}

TEST_P(FoldTraining, GammaZeroInAllChannels) {
  BatchNormClassifier net;
  create_training_graph(net.graph, options());
  Session session(net.graph);
  set_all(session, "dw/beta", 0.5f);
  set_all(session, "dw/gamma", 0);
  const std::vector<float> losses = train(net, session, net.batch());
  EXPECT_LT(losses.back(), 0.8f * losses.front());
}

TEST_P(FoldTraining, BatchVarianceZero) {
  for (const double epsilon : {1e-3, 1e-8}) {
    BatchNormClassifier net(epsilon);
    create_training_graph(net.graph, options());
    Session session(net.graph);
    Feeds feeds = net.batch();
    for (const float value : {0.0f, 0.25f}) {
      // In the first layer, whose padding is VALID, every pixel is the same.
      std::ranges::fill(feeds[0].second.values<float>(), value);
      train(net, session, feeds, 3);
    }
    EXPECT_LT(element(session, "conv/moving_variance", 0), 0.6f);
    const std::vector<float> losses = train(net, session, net.batch());
    EXPECT_LT(losses.back(), 0.8f * losses.front());
  }
}

TEST_P(FoldTraining, TinyMovingVariance) {
  for (const float variance : {0.0f, 1e-12f}) {
    BatchNormClassifier net(1e-8);
    create_training_graph(net.graph, options());
    Session session(net.graph);
    for (const char* name : {"conv/moving_variance", "dw/moving_variance"}) set_all(session, name, variance);
    const std::vector<float> losses = train(net, session, net.batch());
    EXPECT_LT(losses.back(), 0.8f * losses.front());
  }
}

/// Degenerate parameters and inputs leave folding exact.
TEST_P(FoldTraining, FoldedIsUnfoldedAtGammaZeroAndVarianceZero) {
  constexpr SessionOptions kDouble = {.backend = Backend::kReference, .precision = DType::kFloat64};
  for (const auto layer : {FoldingCase::Layer::kConv, FoldingCase::Layer::kDepthwise, FoldingCase::Layer::kMatMul}) {
    FoldingNet unfolded({.layer = layer, .activation = FoldingCase::Activation::kNone});
    FoldingNet folded({.layer = layer, .activation = FoldingCase::Activation::kNone});
    fold_batch_norms(folded.graph, options().folding(), true);
    const auto step = [&](FoldingNet& net) {
      Session session(net.graph, kDouble);
      testing::number_variables(net.graph, session);
      session.variable("net/block/BatchNorm/gamma").data<double>()[0] = 0;
      // The last channel has no variance.
      Tensor weights = session.variable("net/block/weights");
      const std::int64_t channels = session.variable("net/block/BatchNorm/gamma").elements();
      for (std::int64_t i = channels - 1; i < weights.elements(); i += channels) weights.data<double>()[i] = 0;
      const RunRequest request{.fetches = net.graph.outputs(),
                               .gradients_of = net.loss,
                               .gradient_targets = testing::gradient_targets(net.graph),
                               .training = true};
      RunResult result = session.run(request, testing::numbered_feeds(net.graph));
      std::ranges::move(result.gradients, std::back_inserter(result.fetched));
      return result.fetched;
    };
    const std::vector<Tensor> got = step(folded);
    const std::vector<Tensor> wanted = step(unfolded);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k)
      testing::expect_close(got[k], wanted[k], 1e-9, concat("tensor ", k));
  }
}

/// A batch norm over one number a channel.
Graph dense_with_batch_norm(std::int64_t batch) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {batch, 6});
  const Output y = layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {6, 4}));
  const auto vector = [&](const std::string& name, double value, bool trainable) {
    return layers::variable(graph, "fc/" + name, {4}, Initializer::constant(value), trainable);
  };
  graph.set_outputs({layers::batch_norm(graph, "fc/BatchNorm", y, vector("gamma", 1, true), vector("beta", 0, true),
                                        vector("mean", 0, false), vector("variance", 1, false))});
  return graph;
}

std::string refusal_of_a_step(Graph& graph) {
  Session session(graph);
  const Output x = graph.output_at("x");
  Tensor batch(x.shape());
  Initializer::truncated_normal(1).fill(batch, 1);
  return testing::error_of([&] { session.run({.fetches = graph.outputs(), .training = true}, {{x, batch}}); });
}

TEST(OneNumber, EveryFoldingRefusesToTrainOnIt) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle, BnFold::kLate})
    for (const std::int64_t delay : {0, 5}) {
      SCOPED_TRACE(concat("folding ", static_cast<int>(fold), ", delay ", delay));
      const RewriteOptions options{.per_channel = true, .quant_delay = delay, .bn_fold = fold};
      Graph one = dense_with_batch_norm(1), two = dense_with_batch_norm(2), still = dense_with_batch_norm(1);
      create_training_graph(one, options);
      create_training_graph(two, options);
      create_eval_graph(still, {.per_channel = true, .bn_fold = fold});
      EXPECT_TRUE(testing::mentions(refusal_of_a_step(one), {"[BatchNorm \"fc/", "one number a channel", "[1,4]"}));
      EXPECT_EQ(refusal_of_a_step(two), "");
      EXPECT_EQ(refusal_of_a_step(still), "");
    }
}

TEST(OneNumber, FrozenStatisticsDoNotMindIt) {
  Graph graph = dense_with_batch_norm(1);
  create_training_graph(graph, {.freeze_bn_delay = 0});
  EXPECT_EQ(refusal_of_a_step(graph), "");
}

}  // namespace
}  // namespace miniqat::quantize::fold_training_test
