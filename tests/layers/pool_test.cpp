#include "layers/pool.h"

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::pool_test {
namespace {

using testing::expect_fast_is_reference;
using testing::inference_error;
using testing::random_tensor;
using testing::run_op;

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
