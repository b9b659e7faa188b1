#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/op_queries.h"
#include "layers/activations.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::hard_sigmoid_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class HardSigmoidTest : public ::testing::TestWithParam<Backend> {
 protected:
  static testing::OpResult run(const std::vector<float>& values, const HardSigmoidAttributes& line) {
    const auto size = static_cast<std::int64_t>(values.size());
    return testing::run_op(HardSigmoid::make(line), {Tensor::from({size}, values)},
                           {Tensor::from({size}, std::vector<float>(values.size(), 2))}, GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Both, HardSigmoidTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(HardSigmoidTest, KnownValues) {
  const testing::OpResult result = run({-8, -1, 0, 1, 2, 8, -kInfinity, kInfinity}, {.alpha = 0.25, .beta = 0.25});
  const std::vector<float> y = {0, 0, 0.25f, 0.5f, 0.75f, 1, 0, 1}, d_x = {0, 0, 0.5f, 0.5f, 0.5f, 0, 0, 0};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], d_x[i]) << i;
  }
}

TEST_P(HardSigmoidTest, TheSlopeMayFall) {
  const testing::OpResult result = run({-4, 0, 1, 4}, {.alpha = -0.5, .beta = 1});
  const std::vector<float> y = {1, 1, 0.5f, 0}, d_x = {0, 0, -1, 0};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], d_x[i]) << i;
  }
}

TEST_P(HardSigmoidTest, NaNStaysNaN) {
  const testing::OpResult result = run(std::vector<float>(19, std::nanf("")), {});
  for (std::size_t i = 0; i < 19; ++i) EXPECT_TRUE(std::isnan(result.outputs[0].data<float>()[i]));
}

}  // namespace
}  // namespace miniqat::layers::hard_sigmoid_test
