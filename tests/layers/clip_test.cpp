#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/op_queries.h"
#include "layers/activations.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::clip_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

testing::OpResult run(const std::vector<float>& values, const ClipAttributes& bounds, Backend backend) {
  const auto size = static_cast<std::int64_t>(values.size());
  const std::vector<float> twos(values.size(), 2);
  return testing::run_op(Clip::make(bounds), {Tensor::from({size}, values)}, {Tensor::from({size}, twos)}, backend);
}

class ClipTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, ClipTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(ClipTest, KnownValues) {
  const testing::OpResult result =
      run({-8, -0.5f, -0.25f, 0, 1.5f, 2, 8, -kInfinity, kInfinity}, {.low = -0.5, .high = 2}, GetParam());
  const std::vector<float> y = {-0.5f, -0.5f, -0.25f, 0, 1.5f, 2, 2, -0.5f, 2};
  const std::vector<float> d_x = {0, 0, 2, 2, 2, 0, 0, 0, 0};
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(result.outputs[0].data<float>()[i], y[i]) << i;
    EXPECT_EQ(result.d_inputs[0].data<float>()[i], d_x[i]) << i;
  }
}

TEST_P(ClipTest, NaNStaysNaN) {
  const testing::OpResult result = run(std::vector<float>(19, std::nanf("")), {}, GetParam());
  for (std::size_t i = 0; i < 19; ++i) EXPECT_TRUE(std::isnan(result.outputs[0].data<float>()[i]));
}

/// Also in double a bound is the float32 number.
TEST(Clip, BoundsAreFloats) {
  const auto op = Clip::make({.low = -0.1, .high = 0.3});
  Tensor x(Shape{2}, DType::kFloat64), y(Shape{2}, DType::kFloat64);
  x.data<double>()[0] = -1;
  x.data<double>()[1] = 1;
  run_reference(*op, x, y);
  EXPECT_EQ(y.data<double>()[0], -double{0.1f});
  EXPECT_EQ(y.data<double>()[1], double{0.3f});
}

}  // namespace
}  // namespace miniqat::layers::clip_test
