#include <gtest/gtest.h>

#include <limits>

#include "layers/parts.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::concat_test {
namespace {

using testing::expect_values;
using testing::run_op;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ConcatTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, ConcatTest, ::testing::Values(Backend::kFast, Backend::kReference));

/// Two blocks of rows of two numbers; the inputs have 1, 2 and 3 rows in a block.
TEST_P(ConcatTest, JoinsThreeInputsInTheMiddle) {
  const Tensor a = Tensor::from<float>({2, 1, 2}, {1, 1, 1.1F, 1.1F});
  const Tensor b = Tensor::from<float>({2, 2, 2}, {2, 2.5F, 2.1F, 2.6F, 2.2F, 2.7F, 2.3F, 2.8F});
  const Tensor c = Tensor::from<float>({2, 3, 2}, {3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8});
  const Tensor d_y = Tensor::from<float>(
      {2, 6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
  for (const std::int64_t axis : {1, -2}) {
    const auto result = run_op(Concat::make({.axis = axis}), {a, b, c}, {d_y}, GetParam());
    EXPECT_EQ(result.outputs[0].shape(), (Shape{2, 6, 2}));
    expect_values(result.outputs[0], {1,    1,    2,    2.5F, 2.1F, 2.6F, 3, -3, 4, -4, 5, -5,
                                      1.1F, 1.1F, 2.2F, 2.7F, 2.3F, 2.8F, 6, -6, 7, -7, 8, -8});
    expect_values(result.d_inputs[0], {1, 2, 13, 14});
    expect_values(result.d_inputs[1], {3, 4, 5, 6, 15, 16, 17, 18});
    expect_values(result.d_inputs[2], {7, 8, 9, 10, 11, 12, 19, 20, 21, 22, 23, 24});
  }
}

TEST_P(ConcatTest, JoinsChannelsByDefault) {
  const auto result =
      run_op(Concat::make(), {Tensor::from<float>({2, 1}, {1, 2}), Tensor::from<float>({2, 2}, {3, 4, 5, 6})},
             {Tensor::from<float>({2, 3}, {10, 20, 30, 40, 50, 60})}, GetParam());
  expect_values(result.outputs[0], {1, 3, 4, 2, 5, 6});
  expect_values(result.d_inputs[0], {10, 40});
  expect_values(result.d_inputs[1], {20, 30, 50, 60});
}

TEST_P(ConcatTest, JoinsTheFirstAxisAndPassesEmptyInputs) {
  const auto result =
      run_op(Concat::make({.axis = 0}),
             {Tensor::from<float>({1, 2}, {1, 2}), Tensor({0, 2}), Tensor::from<float>({2, 2}, {3, 4, 5, -kInfinity})},
             {Tensor::from<float>({3, 2}, {10, 20, 30, 40, 50, 60})}, GetParam());
  expect_values(result.outputs[0], {1, 2, 3, 4, 5, -kInfinity});
  expect_values(result.d_inputs[0], {10, 20});
  expect_values(result.d_inputs[1], {});
  expect_values(result.d_inputs[2], {30, 40, 50, 60});
}

}  // namespace
}  // namespace miniqat::layers::concat_test
