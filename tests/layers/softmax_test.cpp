// Large logits: elementwise_test.cpp.

#include "layers/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/op_runner.h"

namespace miniqat::layers::softmax_test {
namespace {

using testing::expect_close;
using testing::run_op;

class SoftmaxTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, SoftmaxTest, ::testing::Values(Backend::kFast, Backend::kReference));

/// Logits of log 1, log 3 and of log 2, log 2 have the shares 1/4, 3/4 and 1/2, 1/2 along the last axis.
TEST_P(SoftmaxTest, SharesOfEachRow) {
  const float one = 0, two = std::log(2.0F), three = std::log(3.0F);
  for (const Shape& shape : {Shape{2, 2}, Shape{1, 2, 2}, Shape{2, 1, 1, 2}}) {
    const Tensor x = Tensor::from<float>({2, 2}, {one, three, two, two}).reshaped(shape);
    const Tensor d_y = Tensor::from<float>({2, 2}, {16, 0, 0, 4}).reshaped(shape);
    const auto result = run_op(Softmax::make(), {x}, {d_y}, GetParam());
    expect_close(result.outputs[0], Tensor::from<float>({2, 2}, {0.25F, 0.75F, 0.5F, 0.5F}).reshaped(shape), "y");
    // d_x = y * (d_y - sum of d_y * y), the sums 4 and 2.
    expect_close(result.d_inputs[0], Tensor::from<float>({2, 2}, {3, -3, -1, 1}).reshaped(shape), "d_x");
  }
}

}  // namespace
}  // namespace miniqat::layers::softmax_test
