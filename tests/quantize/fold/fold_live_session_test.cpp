// A net with batch norms is rewritten between two training steps of a session that goes on.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/threads/parallel.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/gradient_check.h"
#include "tests/quantize/fold/batch_norm_classifier.h"
#include "tests/quantize/fold/folding_ways.h"

namespace miniqat::quantize::fold_live_session_test {
namespace {

using testing::BatchNormClassifier;
using testing::difference;

std::vector<float> train(BatchNormClassifier& net, Session& session, int steps) {
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(session.train_step(net.loss, BatchNormClassifier::optimizer(), net.batch()));
  return losses;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::ranges::equal(std::span(static_cast<const std::byte*>(a.raw()), a.bytes()),
                                                    std::span(static_cast<const std::byte*>(b.raw()), b.bytes()));
}

class FoldLiveSession : public ::testing::TestWithParam<testing::FoldingWay> {
 protected:
  // On such a small net threads would do nothing but wait for each other.
  FoldLiveSession() { set_thread_count(1); }
  RewriteOptions options(std::int64_t delay) const {
    return {.per_channel = GetParam().per_channel, .quant_delay = delay, .bn_fold = GetParam().fold};
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, FoldLiveSession, ::testing::ValuesIn(testing::folding_ways()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(FoldLiveSession, KeepsValuesAndOptimizerState) {
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

TEST_P(FoldLiveSession, GoesOnQuantized) {
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
TEST_P(FoldLiveSession, WithoutQuantizersGoesOnAsIfNothingHadHappened) {
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
TEST_P(FoldLiveSession, FreezesAndIsEvaluatedInPlace) {
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

}  // namespace
}  // namespace miniqat::quantize::fold_live_session_test
