#include "layers/depthwise_conv2d.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/parallel.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers {
namespace {

using testing::expect_fast_is_reference;
using testing::random_tensor;
using testing::run_op;

struct Case {
  /// [n, h, w].
  std::array<std::int64_t, 3> images;
  std::array<std::int64_t, 2> window;
  DepthwiseConv2dAttributes attributes;
};

std::vector<Case> cases() {
  const auto valid = Padding::kValid;
  return {
      {{2, 7, 6}, {3, 3}, {}},
      {{1, 8, 9}, {3, 3}, {.padding = valid}},
      {{2, 8, 7}, {3, 3}, {.strides = {2, 2}}},
      {{1, 9, 9}, {3, 3}, {.strides = {2, 2}, .padding = valid}},
      {{1, 10, 11}, {3, 3}, {.strides = {3, 3}}},
      {{2, 9, 8}, {3, 3}, {.strides = {2, 1}}},
      {{1, 7, 7}, {2, 2}, {.strides = {3, 3}}},
      {{1, 9, 10}, {3, 3}, {.dilations = {2, 2}}},
      {{1, 9, 9}, {3, 3}, {.strides = {2, 2}, .dilations = {2, 3}}},
      {{2, 9, 9}, {5, 5}, {}},
      {{1, 9, 9}, {5, 4}, {.strides = {2, 2}, .padding = valid}},
      {{1, 2, 3}, {7, 7}, {}},
      // Small images are taken several at a time, here with a rest.
      {{9, 2, 2}, {3, 3}, {}},
      {{5, 4, 4}, {3, 3}, {.strides = {2, 2}}},
      {{11, 1, 1}, {3, 3}, {}},
      {{2, 4, 1}, {1, 1}, {}},
  };
}

std::string describe(const Case& c, std::int64_t channels) {
  return concat("images ", c.images[0], "x", c.images[1], "x", c.images[2], "x", channels, ", filter ", c.window[0],
                "x", c.window[1], ", strides ", c.attributes.strides[0], "x", c.attributes.strides[1], ", dilations ",
                c.attributes.dilations[0], "x", c.attributes.dilations[1], " ",
                kPaddingNames[static_cast<int>(c.attributes.padding)], ", ", thread_count(), " threads");
}

TEST(DepthwiseConv2d, OwnKernelsAreTheReference) {
  const int before = thread_count();
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (const Case& c : cases())
      for (const std::int64_t channels : {1, 3, 6, 7, 16, 33}) {
        const Shape images = {c.images[0], c.images[1], c.images[2], channels};
        expect_fast_is_reference(DepthwiseConv2d(c.attributes),
                                 {random_tensor(images, 1), random_tensor({c.window[0], c.window[1], channels, 1}, 2)},
                                 describe(c, channels));
      }
  }
  set_thread_count(before);
}

/// Large enough for a second thread to be worth it.
TEST(DepthwiseConv2d, ThreadsAgreeOnLargeImages) {
  const int before = thread_count();
  for (const std::int64_t stride : {1, 2})
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      expect_fast_is_reference(DepthwiseConv2d({.strides = {stride, stride}}),
                               {random_tensor({5, 28, 28, 40}, 1), random_tensor({3, 3, 40, 1}, 2)},
                               concat("stride ", stride, ", ", threads, " threads"));
    }
  set_thread_count(before);
}

/// Only a padding that is skipped keeps an infinite pixel out of sums that do not see it.
TEST(DepthwiseConv2d, PaddingIsSkippedNotMultiplied) {
  Tensor x({1, 3, 3, 16});
  Tensor filter({3, 3, 16, 1});
  std::ranges::fill(x.values<float>(), 1.0f);
  std::ranges::fill(filter.values<float>(), 1.0f);
  std::fill_n(filter.data<float>(), 16, INFINITY);  // The tap that sees only padding from the first row.
  const auto result = run_op(DepthwiseConv2d(), {x, filter});
  EXPECT_EQ(result.outputs[0].data<float>()[0], 4);
  EXPECT_EQ(result.outputs[0].data<float>()[4 * 16], INFINITY);
}

TEST(DepthwiseConv2d, SameThreadsSameBits) {
  const std::vector<Tensor> inputs = {random_tensor({4, 14, 14, 24}, 1), random_tensor({3, 3, 24, 1}, 2)};
  const Tensor d_y = random_tensor({4, 14, 14, 24}, 3);
  const auto first = run_op(DepthwiseConv2d(), inputs, {d_y});
  const auto second = run_op(DepthwiseConv2d(), inputs, {d_y});
  for (const int k : {0, 1})
    EXPECT_TRUE(std::ranges::equal(first.d_inputs[k].values<float>(), second.d_inputs[k].values<float>()));
  EXPECT_TRUE(std::ranges::equal(first.outputs[0].values<float>(), second.outputs[0].values<float>()));
}

}  // namespace
}  // namespace miniqat::layers
