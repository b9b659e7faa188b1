#include "layers/kernels/direct_convolution.h"

#include <gtest/gtest.h>

#include "tests/fewer_cases.h"
#include "tests/layers/convolution_case.h"
#include "tests/layers/kernels/convolution_kernels.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::direct_convolution_test {
namespace {

using testing::random_tensor;
using testing::with_thread_counts;

using Case = testing::ConvolutionCase;

std::vector<Case> cases() {
  const auto valid = Padding::kValid;
  const auto exact = Padding::kExplicit;
  return {
      {{1, 9, 8}, {1, 1}, {}},
      {{3, 7, 6}, {3, 3}, {}},
      {{1, 6, 11}, {5, 5}, {}},
      {{3, 9, 7}, {3, 5}, {.padding = valid}},
      {{1, 9, 10}, {5, 5}, {.padding = valid}},
      {{3, 8, 7}, {3, 3}, {.strides = {2, 2}}},
      {{1, 9, 8}, {5, 5}, {.strides = {2, 2}, .padding = valid}},
      {{1, 11, 10}, {3, 5}, {.strides = {3, 3}}},
      {{3, 7, 8}, {1, 1}, {.strides = {3, 3}}},
      {{1, 8, 9}, {2, 4}, {.strides = {1, 2}}},
      {{1, 10, 9}, {2, 2}, {.strides = {3, 1}, .padding = valid}},
      // Windows larger than the image; a single pixel.
      {{3, 2, 3}, {5, 5}, {}},
      {{1, 1, 1}, {3, 3}, {}},
      {{3, 8, 6}, {3, 3}, {.strides = {2, 2}, .padding = exact, .pads = {1, 1, 1, 1}}},
      {{1, 7, 9}, {4, 5}, {.padding = exact, .pads = {3, 0, 1, 4}}},
      {{3, 6, 5}, {5, 3}, {.strides = {3, 1}, .padding = exact, .pads = {0, 2, 4, 0}}},
  };
}

void expect_reference(const Case& c, std::int64_t in, std::int64_t out) {
  testing::expect_kernels_are_reference(
      {direct_convolution, direct_convolution_backward_input, direct_convolution_backward_filter}, c, in, out);
}

TEST(DirectConvolution, IsTheReference) {
  with_thread_counts([] {
    testing::OneIn chosen(6);
    for (const Case& c : cases())
      for (const std::int64_t in : {1, 2, 3, 4, 6, 17})
        for (const std::int64_t out : {1, 3, 6, 16, 17, 32, 33, 70})
          if (chosen()) expect_reference(c, in, out);
  });
}

// Several bands an image, and enough work for every thread.
TEST(DirectConvolution, LargeImages) {
  with_thread_counts([] {
    expect_reference({{3, 61, 47}, {5, 5}, {}}, 3, 6);
    expect_reference({{2, 57, 80}, {3, 3}, {.strides = {2, 2}}}, 3, 33);
    expect_reference({{3, 40, 41}, {5, 3}, {.padding = Padding::kValid}}, 6, 17);
    expect_reference({{2, 3, 1500}, {3, 3}, {}}, 4, 6);
  });
}

TEST(DirectConvolution, RepeatsBitwise) {
  const Shape x_shape = {16, 28, 28, 1}, filter_shape = {5, 5, 1, 6}, y_shape = {16, 28, 28, 6};
  const DirectConvolution convolution = {window_of(x_shape, filter_shape, {}), 16, 1, 6};
  const Tensor x = random_tensor(x_shape, 1), d_y = random_tensor(y_shape, 2);
  Tensor first(filter_shape), second(filter_shape);
  for (Tensor* d_filter : {&first, &second})
    direct_convolution_backward_filter(convolution, x.data<float>(), d_y.data<float>(), d_filter->data<float>());
  EXPECT_TRUE(std::ranges::equal(first.values<float>(), second.values<float>()));
}

}  // namespace
}  // namespace miniqat::layers::direct_convolution_test
