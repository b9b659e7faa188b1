#include "layers/pool.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/text/error.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::pool_test {
namespace {

using testing::expect_fast_is_reference;
using testing::expect_values;
using testing::inference_error;
using testing::random_tensor;
using testing::run_op;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor row(const std::vector<float>& values) {
  return Tensor::from<float>({1, 1, static_cast<std::int64_t>(values.size()), 1}, values);
}

TEST(Pool, FastIsReference) {
  const auto same = Padding::kSame;
  const auto exact = Padding::kExplicit;
  const std::vector<std::pair<std::array<std::int64_t, 3>, PoolAttributes>> cases = {
      {{2, 8, 6}, {}},
      {{2, 7, 5}, {}},
      {{2, 7, 5}, {.padding = same}},
      {{1, 9, 9}, {.window = {3, 3}, .strides = {2, 2}}},
      {{1, 8, 9}, {.window = {3, 3}, .strides = {2, 2}, .padding = same}},
      {{2, 6, 6}, {.window = {3, 2}, .strides = {1, 1}, .padding = same}},
      {{1, 7, 7}, {.window = {1, 2}, .strides = {3, 3}, .padding = same}},
      {{1, 9, 8}, {.window = {2, 2}, .strides = {4, 3}}},
      {{3, 1, 1}, {.window = {1, 1}}},
      {{1, 2, 3}, {.window = {5, 7}, .strides = {1, 2}, .padding = same}},
      {{2, 7, 7}, {.window = {7, 7}}},
      {{1, 18, 17}, {.window = {17, 17}, .strides = {1, 1}}},
      {{1, 3, 3}, {.window = {20, 20}, .strides = {1, 1}, .padding = same}},
      {{2, 8, 6}, {.window = {3, 3}, .strides = {2, 2}, .padding = exact, .pads = {1, 1, 1, 1}}},
      {{1, 5, 7}, {.window = {4, 2}, .strides = {1, 2}, .padding = exact, .pads = {3, 1, 2, 0}}},
      {{1, 4, 4}, {.padding = exact, .pads = {0, 0, 1, 1}}},
      {{2, 4, 6}, {.padding = exact, .pads = {1, 1, 1, 1}}},
  };
  for (const auto& [image, attributes] : cases)
    for (const std::int64_t channels : {1, 3, 8, 17, 32}) {
      const Tensor x = random_tensor({image[0], image[1], image[2], channels}, 1);
      const std::string what = concat(x.shape(), ", window ", attributes.window[0], "x", attributes.window[1],
                                      ", strides ", attributes.strides[0], "x", attributes.strides[1]);
      expect_fast_is_reference(MaxPool::make(attributes), {x}, "MaxPool " + what);
      expect_fast_is_reference(AvgPool::make(attributes), {x}, "AvgPool " + what);
    }
}

TEST(MaxPool, ForwardIsTheSameWithoutBackward) {
  const Tensor x = random_tensor({2, 7, 7, 17}, 1);
  const auto pool = MaxPool::make({.window = {3, 3}, .strides = {2, 2}, .padding = Padding::kSame});
  const auto alone = run_op(pool, {x});
  const auto both = run_op(pool, {x}, {random_tensor(alone.outputs[0].shape(), 2)});
  EXPECT_TRUE(std::ranges::equal(alone.outputs[0].values<float>(), both.outputs[0].values<float>()));
}

TEST(MaxPool, FirstOfEqualsTakesTheGradient) {
  const Tensor x = Tensor::from<float>({1, 2, 4, 1}, std::vector<float>{1, 3, 0, 0, 3, 3, 0, 0});
  const Tensor d_y = row({5, 7});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto result = run_op(MaxPool::make(), {x}, {d_y}, backend);
    expect_values(result.outputs[0], {3, 0});
    expect_values(result.d_inputs[0], {0, 5, 7, 0, 0, 0, 0, 0});
  }
}

TEST(MaxPool, OverlappingWindowsAddUp) {
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto result =
        run_op(MaxPool::make({.window = {1, 2}, .strides = {1, 1}}), {row({1, 9, 2})}, {row({5, 7})}, backend);
    expect_values(result.outputs[0], {9, 9});
    expect_values(result.d_inputs[0], {0, 12, 0});
  }
}

TEST(MaxPool, PaddingNeverWins) {
  const auto pool = MaxPool::make({.window = {1, 3}, .strides = {1, 1}, .padding = Padding::kSame});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    expect_values(run_op(pool, {row({-5, -3})}, {}, backend).outputs[0], {-3, -3});
    const auto result = run_op(pool, {row({-kInfinity, -kInfinity})}, {row({5, 7})}, backend);
    expect_values(result.outputs[0], {-kInfinity, -kInfinity});
    expect_values(result.d_inputs[0], {12, 0});
  }
}

TEST(MaxPool, KeepsNaN) {
  const auto pool = MaxPool::make({.window = {1, 3}, .strides = {3, 3}});
  for (const Backend backend : {Backend::kFast, Backend::kReference})
    for (const auto& values : std::vector<std::vector<float>>{{kNaN, 1, 2}, {1, kNaN, 2}, {1, 2, kNaN}}) {
      EXPECT_TRUE(std::isnan(run_op(pool, {row(values)}, {}, backend).outputs[0].data<float>()[0]));
      EXPECT_TRUE(std::isnan(run_op(pool, {row(values)}, {row({1})}, backend).outputs[0].data<float>()[0]));
    }
}

TEST(AvgPool, PaddingDoesNotCount) {
  const auto pool = AvgPool::make({.window = {1, 2}, .strides = {2, 2}, .padding = Padding::kSame});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto result = run_op(pool, {row({2, 4, 10})}, {row({6, 8})}, backend);
    expect_values(result.outputs[0], {3, 10});
    expect_values(result.d_inputs[0], {3, 3, 8});
  }
}

// Rows and columns have their own windows, strides and padding; fast and reference take them from one function.
TEST(Pool, RowsAreNotColumns) {
  const Tensor x = Tensor::from<float>({1, 3, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const PoolAttributes attributes = {.window = {2, 3}, .strides = {1, 2}, .padding = Padding::kSame};
  // One row below and one column behind the image.
  const Tensor d_y = Tensor::from<float>({1, 3, 2, 1}, {6, 12, 18, 24, 30, 36});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto largest = run_op(MaxPool::make(attributes), {x}, {d_y}, backend);
    expect_values(largest.outputs[0], {7, 8, 11, 12, 11, 12});
    expect_values(largest.d_inputs[0], {0, 0, 0, 0, 0, 0, 6, 12, 0, 0, 48, 60});
    const auto average = run_op(AvgPool::make(attributes), {x}, {d_y}, backend);
    expect_values(average.outputs[0], {4, 5.5F, 8, 9.5F, 10, 11.5F});
    expect_values(average.d_inputs[0], {1, 1, 4, 3, 4, 4, 13, 9, 13, 13, 37, 24});
  }
}

TEST(Pool, DefaultsToValidAndStridesOfTheWindow) {
  const std::vector<TensorSpec> specs = {{Shape{1, 7, 9, 2}}};
  EXPECT_EQ(MaxPool::make({.window = {2, 3}})->infer(specs)[0].shape, (Shape{1, 3, 3, 2}));
  EXPECT_EQ(AvgPool::make({.window = {2, 3}, .strides = {1, 1}})->infer(specs)[0].shape, (Shape{1, 6, 7, 2}));
}

TEST(Pool, RefusesBadUses) {
  EXPECT_NE(inference_error(MaxPool::make({.window = {8, 8}}), {{1, 7, 7, 2}}).find("[1,7,7,2]"), std::string::npos);
  EXPECT_NE(inference_error(AvgPool::make({.strides = {0, 2}}), {{1, 7, 7, 2}}).find("strides"), std::string::npos);
  EXPECT_NE(inference_error(MaxPool::make(), {{7, 7, 2}}).find("rank 4"), std::string::npos);
  EXPECT_NE(inference_error(MaxPool::make(), {{1, 7, 7, 0}}).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::layers::pool_test
