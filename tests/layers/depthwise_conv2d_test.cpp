#include <gtest/gtest.h>

#include "core/text/error.h"
#include "layers/conv2d.h"
#include "layers/kernels/depthwise_kernels.h"
#include "layers/reference/conv2d.h"
#include "tests/layers/convolution_case.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::depthwise_conv2d_test {
namespace {

using testing::expect_close;
using testing::expect_fast_is_reference;
using testing::random_tensor;
using testing::run_op;
using testing::with_thread_counts;

using Case = testing::ConvolutionCase;

std::vector<Case> cases() {
  const auto valid = Padding::kValid;
  const auto exact = Padding::kExplicit;
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
      {{2, 8, 6}, {3, 3}, {.strides = {2, 2}, .padding = exact, .pads = {1, 1, 1, 1}}},
      {{9, 2, 2}, {3, 3}, {.padding = exact, .pads = {2, 0, 1, 2}}},
      {{1, 7, 9}, {4, 3}, {.strides = {2, 1}, .padding = exact, .dilations = {1, 3}, .pads = {0, 5, 3, 1}}},
  };
}

/// The kernels themselves, whichever the op would take, against the reference loops in double.
void expect_own_kernels_are_reference(const Case& c, std::int64_t channels) {
  const Tensor x = random_tensor(c.x(channels), 1);
  const Tensor filter = random_tensor(c.filter(channels, 1), 2);
  const Window2d window = window_of(x.shape(), filter.shape(), c.attributes);
  const Tensor d_y = random_tensor({c.images[0], window.rows.output, window.columns.output, channels}, 3);
  Tensor d_x(x.shape()), d_filter(filter.shape());
  for (Tensor* tensor : {&d_x, &d_filter}) std::ranges::fill(tensor->values<float>(), NAN);
  depthwise_backward_input(window, c.images[0], channels, d_y.data<float>(), filter.data<float>(), d_x.data<float>());
  depthwise_backward_filter(window, c.images[0], channels, x.data<float>(), d_y.data<float>(), d_filter.data<float>());

  const Tensor wide_x = x.to(DType::kFloat64), wide_filter = filter.to(DType::kFloat64);
  const Tensor wide_d_y = d_y.to(DType::kFloat64);
  Tensor expected_d_x(x.shape(), DType::kFloat64), expected_d_filter(filter.shape(), DType::kFloat64);
  const reference::Convolution naive = {window, x.shape(), filter.shape(), true};
  reference::conv2d_backward_input(naive, wide_d_y.data<double>(), wide_filter.data<double>(),
                                   expected_d_x.values<double>());
  reference::conv2d_backward_filter(naive, wide_x.data<double>(), wide_d_y.data<double>(),
                                    expected_d_filter.values<double>());
  expect_close(d_x, expected_d_x, "d_x of " + c.text(channels, 1));
  expect_close(d_filter, expected_d_filter, "d_filter of " + c.text(channels, 1));
}

TEST(DepthwiseConv2d, OwnKernelsAreTheReference) {
  with_thread_counts([] {
    for (const Case& c : cases())
      for (const std::int64_t channels : {1, 3, 6, 7, 16, 33}) expect_own_kernels_are_reference(c, channels);
    // Large enough for a second thread to be worth it.
    expect_own_kernels_are_reference({{5, 28, 28}, {3, 3}, {}}, 40);
    expect_own_kernels_are_reference({{5, 28, 27}, {3, 3}, {.strides = {2, 2}}}, 40);
  });
}

TEST(DepthwiseConv2d, FastIsReferenceWhereverTheKernelsAreFrom) {
  for (const std::int64_t stride : {1, 2})
    for (const std::int64_t channels : {16, 96})
      for (const std::int64_t image : {2, 9})
        for (const std::int64_t multiplier : {1, 2})
          expect_fast_is_reference(
              DepthwiseConv2d::make({.strides = {stride, stride}}),
              {random_tensor({3, image, image, channels}, 1), random_tensor({3, 3, channels, multiplier}, 2)},
              miniqat::concat("stride ", stride, ", ", channels, " channels, images of ", image, ", multiplier ",
                              multiplier));
}

TEST(DepthwiseConv2d, LargeStridedImages) {
  expect_fast_is_reference(DepthwiseConv2d::make({.strides = {2, 2}}),
                           {random_tensor({4, 65, 64, 64}, 1), random_tensor({3, 3, 64, 1}, 2)}, "4x65x64x64");
}

TEST(DepthwiseConv2d, SameThreadsSameBits) {
  const std::vector<Tensor> inputs = {random_tensor({4, 14, 14, 24}, 1), random_tensor({3, 3, 24, 1}, 2)};
  const Tensor d_y = random_tensor({4, 14, 14, 24}, 3);
  const auto first = run_op(DepthwiseConv2d::make(), inputs, {d_y});
  const auto second = run_op(DepthwiseConv2d::make(), inputs, {d_y});
  for (const int k : {0, 1})
    EXPECT_TRUE(std::ranges::equal(first.d_inputs[k].values<float>(), second.d_inputs[k].values<float>()));
  EXPECT_TRUE(std::ranges::equal(first.outputs[0].values<float>(), second.outputs[0].values<float>()));
}

}  // namespace
}  // namespace miniqat::layers::depthwise_conv2d_test
