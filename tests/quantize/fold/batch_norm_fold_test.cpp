// The arithmetic of folding on numbers that a reader can follow; gradients are checked with the samples
// (tests/op_samples_folding.cpp).
#include "quantize/fold/batch_norm_fold.h"

#include <gtest/gtest.h>

#include "tests/layers/op_runner.h"

namespace miniqat::quantize::batch_norm_fold_test {
namespace {

using testing::expect_values;
using testing::run_op;

// With this epsilon a variance of 12 has sigma 4, one of 60 has sigma 8.
constexpr double kEpsilon = 4;

Tensor vector(const std::vector<float>& values) { return Tensor::from<float>({std::ssize(values)}, values); }

TEST(BatchNormFold, ByHand) {
  const auto result =
      run_op(BatchNormFold({kEpsilon}), {vector({2, 0}), vector({10, 7}), vector({9, 9}), vector({12, 12})});
  expect_values(result.outputs[0], {0.5f, 0}, "multiplier");
  expect_values(result.outputs[1], {5.5f, 7}, "bias");
}

TEST(BatchNormCorrection, ByHandBeforeAndAfterTheFreeze) {
  const std::vector<Tensor> inputs = {vector({2}), vector({9}), vector({12}), vector({12}), vector({60})};
  std::vector<Tensor> outputs = {vector({0}), vector({0}), vector({0})};
  ForwardContext context;
  for (const Tensor& input : inputs) context.inputs.push_back(&input);
  for (Tensor& output : outputs) context.outputs.push_back(&output);
  const BatchNormCorrection op({.epsilon = kEpsilon, .freeze_delay = 3});
  EXPECT_EQ(op.freeze_delay(), 3);
  op.forward(context);
  expect_values(outputs[0], {0.5f}, "scale");
  expect_values(outputs[1], {2}, "recip");
  expect_values(outputs[2], {0}, "offset");
  context.frozen = true;
  op.forward(context);
  expect_values(outputs[0], {0.5f}, "scale once frozen");
  expect_values(outputs[1], {1}, "recip once frozen");
  expect_values(outputs[2], {1.5f}, "offset once frozen");
}

TEST(BatchNormScale, ByHand) {
  const auto result = run_op(BatchNormScale({.epsilon = kEpsilon}), {vector({2, -2, 0.25f}), vector({60, 12, 60})}, {});
  expect_values(result.outputs[0], {0.25f, -0.5f, 0.03125f}, "scale");
  expect_values(result.outputs[1], {4, -2, 32}, "recip");
}

TEST(BatchNormScale, StaysAwayFromZero) {
  const auto result = run_op(BatchNormScale({.epsilon = kEpsilon, .floor = 0.5}),
                             {vector({0, 0.25f, -0.25f, -0.5f, 0.75f}), vector({12, 12, 12, 12, 12})});
  expect_values(result.outputs[0], {0.125f, 0.125f, -0.125f, -0.125f, 0.1875f}, "scale");
  expect_values(result.outputs[1], {8, 8, -8, -8, 1 / 0.1875f}, "recip");
}

}  // namespace
}  // namespace miniqat::quantize::batch_norm_fold_test
