#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "layers/parts.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::slice_test {
namespace {

std::vector<float> counted(std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

class SliceTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, SliceTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(SliceTest, KeepsWhatItNamesAndGivesTheRestNoGradient) {
  const Tensor x = Tensor::from({2, 3, 4}, counted(24)), d_y = Tensor::from({2, 2, 2}, std::vector<float>(8, 5));
  const SliceAttributes attributes = {.axes = {-1, 1}, .starts = {1, 0}, .ends = {3, 3}, .steps = {1, 2}};
  const testing::OpResult result = testing::run_op(Slice::make(attributes), {x}, {d_y}, GetParam());
  const std::vector<float> expected = {1, 2, 9, 10, 13, 14, 21, 22};
  EXPECT_EQ(values_of(result.outputs[0]), expected);
  std::vector<float> d_x(24);
  for (const float place : expected) d_x[static_cast<std::size_t>(place)] = 5;
  EXPECT_EQ(values_of(result.d_inputs[0]), d_x);
}

/// A NaN beside the part stays where it is; one in it is kept.
TEST_P(SliceTest, NaNsOfOtherPartsDoNotMatter) {
  std::vector<float> numbers = counted(6);
  numbers[0] = numbers[4] = std::nanf("");
  const testing::OpResult result =
      testing::run_op(Slice::make({.axes = {1}, .starts = {1}, .ends = {3}}), {Tensor::from({2, 3}, numbers)},
                      {Tensor::from({2, 2}, counted(4))}, GetParam());
  const std::vector<float> y = values_of(result.outputs[0]);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 2);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(values_of(result.d_inputs[0]), (std::vector<float>{0, 0, 1, 0, 2, 3}));
}

}  // namespace
}  // namespace miniqat::layers::slice_test
