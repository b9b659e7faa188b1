#include <gtest/gtest.h>

#include "layers/elementwise.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::bias_add_test {
namespace {

using testing::expect_values;
using testing::run_op;

class BiasAddTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, BiasAddTest, ::testing::Values(Backend::kFast, Backend::kReference));

/// Whatever the rank of x, its last axis has the channels.
TEST_P(BiasAddTest, AddsToTheLastAxis) {
  const Tensor bias = Tensor::from<float>({3}, {10, 20, 30});
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 1, 3}, Shape{1, 2, 1, 3}}) {
    const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}).reshaped(shape);
    const Tensor d_y = Tensor::from<float>({2, 3}, {1, 2, 3, 40, 50, 60}).reshaped(shape);
    const auto result = run_op(BiasAdd::make(), {x, bias}, {d_y}, GetParam());
    expect_values(result.outputs[0], {11, 22, 33, 14, 25, 36}, shape.str());
    expect_values(result.d_inputs[0], {1, 2, 3, 40, 50, 60}, shape.str());
    expect_values(result.d_inputs[1], {41, 52, 63}, shape.str());
  }
}

}  // namespace
}  // namespace miniqat::layers::bias_add_test
