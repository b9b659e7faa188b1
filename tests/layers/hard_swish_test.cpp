#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "layers/activations.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::hard_swish_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

testing::OpResult run(const std::vector<float>& values, Backend backend) {
  const auto size = static_cast<std::int64_t>(values.size());
  const std::vector<float> twos(values.size(), 2);
  return testing::run_op(HardSwish::make(), {Tensor::from({size}, values)}, {Tensor::from({size}, twos)}, backend);
}

class HardSwishTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, HardSwishTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(HardSwishTest, KnownValues) {
  const testing::OpResult result = run({-1.5f, -1, 0, 1, 2}, GetParam());
  const std::vector<float> y = {-0.375f, -1.0f / 3, 0, 2.0f / 3, 5.0f / 3};
  const std::vector<float> d_x = {0, 1.0f / 3, 1, 5.0f / 3, 7.0f / 3};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_FLOAT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_FLOAT_EQ(result.d_inputs[0].data<float>()[i], d_x[i]) << i;
  }
}

TEST_P(HardSwishTest, BeyondThreeItIsZeroOrItsInput) {
  const std::vector<float> x = {-3, 3, -3.1f, 3.1f, -1e30f, 1e30f, -kInfinity, kInfinity};
  const testing::OpResult result = run(x, GetParam());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], i % 2 == 0 ? 0 : x[i]) << x[i];
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], i % 2 == 0 ? 0 : 2) << x[i];
  }
}

TEST_P(HardSwishTest, NaNStaysNaN) {
  const testing::OpResult result = run(std::vector<float>(19, std::nanf("")), GetParam());
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_TRUE(std::isnan(result.outputs[0].data<float>()[i]));
    EXPECT_TRUE(std::isnan(result.d_inputs[0].data<float>()[i]));
  }
}

}  // namespace
}  // namespace miniqat::layers::hard_swish_test
