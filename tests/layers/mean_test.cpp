#include "layers/mean.h"

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::mean_test {
namespace {

using testing::expect_fast_is_reference;
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

// Sums of many are not left to float32.
TEST(Mean, KeepsItsPrecisionOverManyElements) {
  Tensor x({2, 400, 100, 300});
  for (float& value : x.values<float>()) value = 1.1f;
  const Tensor y = run_op(Mean::make({.axes = {1, 2}}), {x}).outputs[0];
  for (const float value : y.values<float>()) ASSERT_FLOAT_EQ(value, 1.1f);
}

}  // namespace
}  // namespace miniqat::layers::mean_test
