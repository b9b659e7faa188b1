#include "layers/mean.h"

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::mean_test {
namespace {

using testing::expect_fast_is_reference;
using testing::expect_values;
using testing::random_tensor;
using testing::run_op;
using testing::with_thread_counts;

// Means over neighbouring axes with enough channels have a loop of their own; both sides of its limits.
TEST(Mean, FastIsReference) {
  with_thread_counts([] {
    for (const Shape& x : {Shape{2, 3, 5, 300}, Shape{8, 7, 7, 64}, Shape{3, 2, 2, 1000}, Shape{40, 5, 4, 17},
                           Shape{64, 2, 3, 15}, Shape{1, 41, 3, 513}, Shape{2, 1, 1, 700}, Shape{64, 64, 3, 33}})
      for (const std::vector<std::int64_t>& axes :
           std::vector<std::vector<std::int64_t>>{{1, 2}, {0}, {0, 1, 2}, {1}, {3}, {0, 2}, {}})
        expect_fast_is_reference(Mean::make({.axes = axes}), {random_tensor(x, 1)},
                                 concat(x, ", ", axes.size(), " axes, ", thread_count(), " threads"));
  });
}

// Fast and reference take the shape of the result from one function.
TEST(Mean, AveragesTheAxesThatItNames) {
  const Tensor x = Tensor::from<float>({2, 3, 2}, {1, 2, 3, 4, 8, 9, 10, 20, 30, 40, 80, 90});
  const auto expect = [&](const MeanAttributes& attributes, const Shape& shape, const std::vector<float>& y,
                          const std::vector<float>& d_y, const std::vector<float>& d_x) {
    for (const Backend backend : {Backend::kFast, Backend::kReference}) {
      const auto result = run_op(Mean::make(attributes), {x}, {Tensor::from(shape, d_y)}, backend);
      EXPECT_EQ(result.outputs[0].shape(), shape);
      expect_values(result.outputs[0], y);
      expect_values(result.d_inputs[0], d_x);
    }
  };
  expect({.axes = {1}}, {2, 2}, {4, 5, 40, 50}, {3, 6, 9, 12}, {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
  expect({.axes = {-1}, .keep_dims = true}, {2, 3, 1}, {1.5F, 3.5F, 8.5F, 15, 35, 85}, {2, 4, 6, 8, 10, 12},
         {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  expect({.axes = {0, -2}, .keep_dims = true}, {1, 1, 2}, {22, 27.5F}, {6, 12}, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  expect({}, {}, {24.75F}, {12}, std::vector<float>(12, 1));
}

// Sums of many are not left to float32.
TEST(Mean, KeepsItsPrecisionOverManyElements) {
  Tensor x({2, 400, 100, 300});
  for (float& value : x.values<float>()) value = 1.1f;
  const Tensor y = run_op(Mean::make({.axes = {1, 2}}), {x}).outputs[0];
  for (const float value : y.values<float>()) ASSERT_FLOAT_EQ(value, 1.1f);
}

}  // namespace
}  // namespace miniqat::layers::mean_test
