// Where a batch norm degenerates, quantized training goes on with finite numbers and finds its way back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/threads/parallel.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/fold/batch_norm_classifier.h"
#include "tests/quantize/fold/folding_outcome.h"
#include "tests/quantize/fold/folding_ways.h"

namespace miniqat::quantize::fold_safety_test {
namespace {

using testing::BatchNormClassifier;
using testing::FoldingCase;
using testing::FoldingNet;

class FoldSafety : public ::testing::TestWithParam<testing::FoldingWay> {
 protected:
  // On such a small net threads would do nothing but wait for each other.
  FoldSafety() { set_thread_count(1); }
  BnFold mode() const { return GetParam().fold; }
  bool per_channel() const { return GetParam().per_channel; }
  RewriteOptions options(std::int64_t delay = 0) const {
    return {.per_channel = per_channel(), .quant_delay = delay, .bn_fold = mode()};
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, FoldSafety, ::testing::ValuesIn(testing::folding_ways()),
                         [](const auto& info) { return info.param.name(); });

void expect_finite(Session& session) {
  for (const auto& [name, value] : session.variables())
    EXPECT_TRUE(std::ranges::all_of(value.values<float>(), [](float x) { return std::isfinite(x); })) << name;
}

/// Every loss is finite, or train_step throws.
std::vector<float> train(BatchNormClassifier& net, Session& session, const Feeds& feeds, int steps = 100) {
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(session.train_step(net.loss, BatchNormClassifier::optimizer(), feeds));
  expect_finite(session);
  return losses;
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

TEST_P(FoldSafety, GammaZeroInOneChannel) {
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

TEST_P(FoldSafety, GammaZeroInOneChannelBeforeQuantization) {
  BatchNormClassifier net;
  create_training_graph(net.graph, options(1000));
  Session session(net.graph);
  silence_channels(session);
  train(net, session, net.batch());
  expect_awake(session);
}

TEST_P(FoldSafety, GammaZeroInAllChannels) {
  BatchNormClassifier net;
  create_training_graph(net.graph, options());
  Session session(net.graph);
  set_all(session, "dw/beta", 0.5f);
  set_all(session, "dw/gamma", 0);
  const std::vector<float> losses = train(net, session, net.batch());
  EXPECT_LT(losses.back(), 0.8f * losses.front());
}

TEST_P(FoldSafety, BatchVarianceZero) {
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

TEST_P(FoldSafety, TinyMovingVariance) {
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
TEST_P(FoldSafety, FoldedIsUnfoldedAtGammaZeroAndVarianceZero) {
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

}  // namespace
}  // namespace miniqat::quantize::fold_safety_test
