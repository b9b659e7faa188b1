#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "layers/parts.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::pad_test {
namespace {

using testing::expect_values;
using testing::run_op;

class PadTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, PadTest, ::testing::Values(Backend::kFast, Backend::kReference));

TEST_P(PadTest, SurroundsEachAxisByItsOwnZeros) {
  const Tensor x = Tensor::from<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor d_y =
      Tensor::from<float>({2, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  const auto result = run_op(Pad::make({.paddings = {{{0, 0}, {1, 0}, {1, 2}}}}), {x}, {d_y}, GetParam());
  EXPECT_EQ(result.outputs[0].shape(), (Shape{2, 2, 5}));
  expect_values(result.outputs[0], {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0});
  expect_values(result.d_inputs[0], {7, 8, 17, 18});
}

TEST_P(PadTest, KeepsNaNsAndInfinitiesInTheirPlaces) {
  const auto result =
      run_op(Pad::make({.paddings = {{{1, 1}}}}),
             {Tensor::from<float>({2}, {std::nanf(""), std::numeric_limits<float>::infinity()})}, {}, GetParam());
  const auto y = result.outputs[0].values<float>();
  EXPECT_EQ(y[0], 0);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_TRUE(std::isinf(y[2]));
  EXPECT_EQ(y[3], 0);
}

}  // namespace
}  // namespace miniqat::layers::pad_test
