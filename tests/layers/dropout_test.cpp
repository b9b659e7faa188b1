#include "layers/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "core/engine/session.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"

namespace miniqat::dropout_test {
namespace {

struct DropoutRun {
  Tensor y;
  Tensor d_x;
};

/// Feeds ones, so that y is mask / (1 - rate) and, the gradient being one as well, d_x must be the same.
class DropoutTest : public ::testing::Test {
 protected:
  void build(std::int64_t count, double rate) {
    x_ = layers::placeholder(graph_, "x", {count});
    y_ = layers::dropout(graph_, "dropout", x_, {.rate = rate});
    ones_ = Tensor(Shape{count});
    std::ranges::fill(ones_.values<float>(), 1.0f);
  }

  DropoutRun run(Session& session, bool training = true) {
    const RunResult result = session.run(
        {.fetches = {y_}, .gradients_of = y_, .gradient_targets = {x_}, .training = training}, {{x_, ones_}});
    return {result.fetched[0], result.gradients[0]};
  }

  static bool equal(const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.values<float>(), b.values<float>());
  }

  Graph graph_;
  Output x_, y_;
  Tensor ones_;
};

TEST_F(DropoutTest, DropsItsShareAndScalesTheRest) {
  constexpr std::int64_t kCount = 100'003;
  for (const double rate : {0.1, 0.5, 0.8}) {
    graph_ = Graph();
    build(kCount, rate);
    Session session(graph_);
    const Tensor y = run(session).y;
    const float kept = static_cast<float>(1 / (1 - rate));
    std::int64_t dropped = 0;
    for (const float value : y.values<float>()) {
      ASSERT_TRUE(value == 0 || value == kept) << value;
      dropped += value == 0;
    }
    const double deviation = std::sqrt(kCount * rate * (1 - rate));
    EXPECT_NEAR(static_cast<double>(dropped), kCount * rate, 4 * deviation) << "rate " << rate;
  }
}

// Elements near and far from each other, and the same element in another step, are dropped together as often as chance
// has it.
TEST_F(DropoutTest, DropsIndependently) {
  constexpr std::int64_t kCount = 200'000;
  constexpr double kRate = 0.3;
  build(kCount, kRate);
  Session session(graph_);
  const Tensor first = run(session).y, second = run(session).y;
  const auto expect_independent = [](std::span<const float> a, std::span<const float> b, const std::string& what) {
    std::int64_t both = 0;
    for (std::size_t i = 0; i < b.size(); ++i) both += a[i] == 0 && b[i] == 0;
    const auto pairs = static_cast<double>(b.size());
    const double share = kRate * kRate;
    EXPECT_NEAR(static_cast<double>(both), pairs * share, 4.5 * std::sqrt(pairs * share * (1 - share))) << what;
  };
  const auto values = first.values<float>();
  for (const std::size_t lag : {1, 2, 3, 4, 7, 8, 16, 64, 1024, 4096, 65536, 100'000})
    expect_independent(values, values.subspan(lag), "lag " + std::to_string(lag));
  expect_independent(values, second.values<float>(), "the next step");
}

TEST_F(DropoutTest, BackwardUsesTheMaskOfForward) {
  build(70'001, 0.5);
  Session session(graph_);
  const DropoutRun result = run(session);
  EXPECT_TRUE(equal(result.y, result.d_x));
}

TEST_F(DropoutTest, MaskDependsOnSeedAndStepOnly) {
  build(70'001, 0.5);
  Session one(graph_, {.seed = 1}), again(graph_, {.seed = 1}), two(graph_, {.seed = 2});
  Session reference(graph_, {.seed = 1, .backend = Backend::kReference});
  const int threads = thread_count();
  set_thread_count(1);
  const Tensor first = run(one).y;
  set_thread_count(2);
  EXPECT_TRUE(equal(run(again).y, first)) << "thread count changed the mask";
  set_thread_count(threads);
  EXPECT_TRUE(equal(run(reference).y, first)) << "backend changed the mask";
  EXPECT_FALSE(equal(run(one).y, first)) << "the second step repeats the mask of the first";
  EXPECT_FALSE(equal(run(two).y, first)) << "another seed gives the same mask";
}

TEST_F(DropoutTest, NodesHaveMasksOfTheirOwn) {
  build(1000, 0.5);
  const Output other = layers::dropout(graph_, "other", x_, {.rate = 0.5});
  Session session(graph_);
  const RunResult result = session.run(
      {.fetches = {y_, other}, .gradients_of = {}, .gradient_targets = {}, .training = true}, {{x_, ones_}});
  EXPECT_FALSE(equal(result.fetched[0], result.fetched[1]));
}

TEST_F(DropoutTest, EvaluationPassesThrough) {
  build(1000, 0.9);
  Session session(graph_);
  const DropoutRun result = run(session, false);
  EXPECT_TRUE(equal(result.y, ones_));
  EXPECT_TRUE(equal(result.d_x, ones_));
}

TEST_F(DropoutTest, RateZeroKeepsAll) {
  build(1000, 0);
  Session session(graph_);
  EXPECT_TRUE(equal(run(session).y, ones_));
}

}  // namespace
}  // namespace miniqat::dropout_test
