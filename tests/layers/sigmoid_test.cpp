#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "layers/activations.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::sigmoid_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

testing::OpResult run(const std::vector<float>& values, Backend backend) {
  const auto size = static_cast<std::int64_t>(values.size());
  const std::vector<float> ones(values.size(), 1);
  return testing::run_op(Sigmoid::make(), {Tensor::from({size}, values)}, {Tensor::from({size}, ones)}, backend);
}

class SigmoidTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, SigmoidTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(SigmoidTest, KnownValues) {
  const testing::OpResult result = run({0, 1, -1, 4, -4}, GetParam());
  const std::vector<float> y = {0.5f, 0.7310586f, 0.2689414f, 0.9820138f, 0.01798621f};
  const std::vector<float> d_x = {0.25f, 0.1966119f, 0.1966119f, 0.01766271f, 0.01766271f};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_FLOAT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_NEAR(result.d_inputs[0].data<float>()[i], d_x[i], 1e-7) << i;
  }
}

TEST_P(SigmoidTest, FarAwayItIsFlat) {
  const testing::OpResult result = run({kInfinity, -kInfinity, 200, -200}, GetParam());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], i % 2 == 0 ? 1 : 0) << i;
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], 0) << i;
  }
}

TEST_P(SigmoidTest, NaNStaysNaN) {
  const testing::OpResult result = run(std::vector<float>(19, std::nanf("")), GetParam());
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_TRUE(std::isnan(result.outputs[0].data<float>()[i]));
    EXPECT_TRUE(std::isnan(result.d_inputs[0].data<float>()[i]));
  }
}

/// 1 / (1 + e^-x) would lose these to the sum's rounding, or to e^-x beyond float32.
TEST(Sigmoid, SmallResultsKeepTheirDigits) {
  const testing::OpResult result = run({-30, -60, -87}, Backend::kFast);
  for (std::size_t i = 0; i < 3; ++i) {
    const double x = std::vector{-30.0, -60.0, -87.0}[i];
    EXPECT_NEAR(result.outputs[0].data<float>()[i] * (1 + std::exp(-x)), 1, 3e-7) << x;
  }
}

}  // namespace
}  // namespace miniqat::layers::sigmoid_test
