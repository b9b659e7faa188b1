#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/engine/session.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "layers/softmax.h"

namespace miniqat::softmax_cross_entropy_test {
namespace {

class SoftmaxCrossEntropyTest : public ::testing::TestWithParam<Backend> {
 protected:
  struct LossAndGradient {
    float loss;
    std::vector<float> d_logits;
  };

  LossAndGradient run(const std::vector<float>& logits, const std::vector<std::int32_t>& labels,
                      double label_smoothing = 0, const std::vector<double>& class_weights = {}) {
    const auto rows = static_cast<std::int64_t>(labels.size());
    const auto classes = static_cast<std::int64_t>(logits.size()) / rows;
    Graph graph;
    const Output x = layers::placeholder(graph, "logits", {rows, classes});
    const Output t = layers::placeholder(graph, "labels", {rows}, DType::kInt32);
    const Output loss = layers::softmax_cross_entropy(
        graph, x, t, "loss", {.label_smoothing = label_smoothing, .class_weights = class_weights});
    EXPECT_EQ(loss.node->name(), "loss");
    Session session(graph, {.backend = GetParam()});
    const RunResult result = session.run({.fetches = {loss}, .gradients_of = loss, .gradient_targets = {x}},
                                         {{x, Tensor::from(x.shape(), logits)}, {t, Tensor::from(t.shape(), labels)}});
    const std::span<const float> d = result.gradients[0].values<float>();
    return {*result.fetched[0].data<float>(), {d.begin(), d.end()}};
  }
};

INSTANTIATE_TEST_SUITE_P(Both, SoftmaxCrossEntropyTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(SoftmaxCrossEntropyTest, UniformLogitsLoseTheLogarithmOfTheClasses) {
  const auto result = run({3, 3, 3, 3, -1, -1, -1, -1}, {0, 2});
  EXPECT_FLOAT_EQ(result.loss, std::log(4.0f));
  const std::vector<float> wanted = {-0.375f, 0.125f, 0.125f, 0.125f, 0.125f, 0.125f, -0.375f, 0.125f};
  ASSERT_EQ(result.d_logits.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_FLOAT_EQ(result.d_logits[i], wanted[i]) << i;
}

TEST_P(SoftmaxCrossEntropyTest, SmoothingSpreadsTheTarget) {
  // Softmax 1/5, 4/5; targets 7/8 and 1/8: 7/8 log 5 + 1/8 log(5/4).
  const float four = std::log(4.0f);
  const auto result = run({0, four}, {0}, 0.25);
  EXPECT_FLOAT_EQ(result.loss, std::log(5.0f) - four / 8);
  ASSERT_EQ(result.d_logits.size(), 2u);
  EXPECT_FLOAT_EQ(result.d_logits[0], 0.2f - 0.875f);
  EXPECT_FLOAT_EQ(result.d_logits[1], 0.8f - 0.125f);
}

TEST_P(SoftmaxCrossEntropyTest, AWeightMultipliesTheLossAndTheGradientOfItsLabel) {
  // Softmax 1/5, 4/5: (2 log 5 + 1/2 log(5/4)) / 2, divided by the rows and not by 2.5.
  const float four = std::log(4.0f);
  const auto result = run({0, four, 0, four}, {0, 1}, 0, {2, 0.5});
  EXPECT_FLOAT_EQ(result.loss, std::log(5.0f) + (std::log(5.0f) - four) / 4);
  ASSERT_EQ(result.d_logits.size(), 4u);
  EXPECT_FLOAT_EQ(result.d_logits[0], -0.8f);
  EXPECT_FLOAT_EQ(result.d_logits[1], 0.8f);
  EXPECT_FLOAT_EQ(result.d_logits[2], 0.05f);
  EXPECT_FLOAT_EQ(result.d_logits[3], -0.05f);
}

TEST_P(SoftmaxCrossEntropyTest, LogitsOfTenThousandStayFinite) {
  EXPECT_FLOAT_EQ(run({1e4f, -1e4f}, {0}).loss, 0);
  EXPECT_FLOAT_EQ(run({1e4f, -1e4f}, {1}).loss, 2e4f);
  EXPECT_FLOAT_EQ(run({-1e4f, -1e4f}, {1}).loss, std::log(2.0f));
  EXPECT_EQ(run({1e4f, -1e4f}, {1}).d_logits, (std::vector<float>{1, -1}));
}

TEST_P(SoftmaxCrossEntropyTest, NaNLogitsGiveANaNLoss) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run({nan, 0, 0, 0}, {1, 1}).loss)) << "in the first class, where the maximum starts";
  EXPECT_TRUE(std::isnan(run({0, 0, 0, nan}, {0, 0}).loss)) << "in a class that is not the label";
}

TEST_P(SoftmaxCrossEntropyTest, BadLabelsAreErrorsThatNameRowAndValue) {
  const auto message = [&](std::int32_t bad) -> std::string {
    try {
      run({1, 2, 3, 4, 5, 6}, {2, bad});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message(3).find("label 3 of row 1 is outside [0, 3)"), std::string::npos) << message(3);
  EXPECT_NE(message(-1).find("label -1 of row 1 is outside [0, 3)"), std::string::npos) << message(-1);
  EXPECT_NE(message(std::numeric_limits<std::int32_t>::min()).find("row 1"), std::string::npos);
  EXPECT_EQ(message(0), "accepted");
}

}  // namespace
}  // namespace miniqat::softmax_cross_entropy_test
