#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/op_queries.h"
#include "layers/activations.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::leaky_relu_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

testing::OpResult run(const std::vector<float>& values, double alpha, Backend backend) {
  const auto size = static_cast<std::int64_t>(values.size());
  const std::vector<float> twos(values.size(), 2);
  return testing::run_op(LeakyRelu::make({.alpha = alpha}), {Tensor::from({size}, values)},
                         {Tensor::from({size}, twos)}, backend);
}

class LeakyReluTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, LeakyReluTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(LeakyReluTest, KnownValues) {
  const testing::OpResult result = run({-8, -1, 0, 1, 8, -kInfinity, kInfinity}, 0.25, GetParam());
  const std::vector<float> y = {-2, -0.25f, 0, 1, 8, -kInfinity, kInfinity};
  const std::vector<float> d_x = {0.5f, 0.5f, 0.5f, 2, 2, 0.5f, 2};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], d_x[i]) << i;
  }
}

TEST_P(LeakyReluTest, AnAlphaOf0IsARelu) {
  const testing::OpResult result = run({-3, 0, 5}, 0, GetParam());
  const std::vector<float> y = {0, 0, 5}, d_x = {0, 0, 2};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], d_x[i]) << i;
  }
}

TEST_P(LeakyReluTest, NaNStaysNaN) {
  const testing::OpResult result = run(std::vector<float>(19, std::nanf("")), 0.1, GetParam());
  for (std::size_t i = 0; i < 19; ++i) EXPECT_TRUE(std::isnan(result.outputs[0].data<float>()[i]));
}

/// Also in double alpha is the float32 number, so that a table of integers rounds what training rounds.
TEST(LeakyRelu, AlphaIsAFloat) {
  const auto op = LeakyRelu::make({.alpha = 0.1});
  Tensor x(Shape{1}, DType::kFloat64), y(Shape{1}, DType::kFloat64);
  x.data<double>()[0] = -1;
  run_reference(*op, x, y);
  EXPECT_EQ(y.data<double>()[0], -double{0.1f});
}

}  // namespace
}  // namespace miniqat::layers::leaky_relu_test
