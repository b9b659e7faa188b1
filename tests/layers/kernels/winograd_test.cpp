#include "layers/kernels/winograd.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fewer_cases.h"
#include "tests/layers/kernels/convolution_kernels.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::winograd_test {
namespace {

using testing::random_tensor;
using testing::with_thread_counts;

using Case = testing::ConvolutionCase;

constexpr std::array<std::int64_t, 2> kWindow = {3, 3};

std::vector<Case> cases() {
  const auto exact = Padding::kExplicit;
  return {
      {{1, 8, 8}, kWindow, {}},
      {{3, 7, 6}, kWindow, {}},
      {{2, 6, 11}, kWindow, {}},
      {{3, 9, 7}, kWindow, {.padding = Padding::kValid}},
      {{5, 4, 8}, kWindow, {.padding = Padding::kValid}},
      // Patches mostly outside of the image; a single pixel.
      {{3, 2, 3}, kWindow, {}},
      {{7, 1, 1}, kWindow, {}},
      {{1, 1, 40}, kWindow, {}},
      {{2, 6, 5}, kWindow, {.padding = exact, .pads = {2, 2, 2, 2}}},
      {{2, 7, 9}, kWindow, {.padding = exact, .pads = {2, 0, 1, 2}}},
      {{2, 5, 6}, kWindow, {.padding = exact, .pads = {0, 2, 2, 1}}},
      {{1, 1, 2}, kWindow, {.padding = exact, .pads = {2, 1, 0, 2}}},
  };
}

void expect_reference(const Case& c, std::int64_t in, std::int64_t out) {
  testing::expect_kernels_are_reference({winograd_convolution, winograd_backward_input, winograd_backward_filter}, c,
                                        in, out);
}

TEST(Winograd, IsTheReference) {
  with_thread_counts([] {
    testing::OneIn chosen(6);
    for (const Case& c : cases())
      for (const std::int64_t in : {16, 32, 48})
        for (const std::int64_t out : {16, 32, 80})
          if (chosen()) expect_reference(c, in, out);
  });
}

// Several groups of patches, and enough work for every thread.
TEST(Winograd, LargeImages) {
  with_thread_counts([] {
    expect_reference({{2, 31, 23}, kWindow, {}}, 16, 16);
    expect_reference({{3, 20, 11}, kWindow, {.padding = Padding::kValid}}, 32, 16);
  });
}

TEST(Winograd, RepeatsBitwise) {
  const Shape x_shape = {16, 14, 14, 32}, filter_shape = {3, 3, 32, 16}, y_shape = {16, 14, 14, 16};
  const DirectConvolution convolution = {window_of(x_shape, filter_shape, {}), 16, 32, 16};
  const Tensor x = random_tensor(x_shape, 1), d_y = random_tensor(y_shape, 2);
  Tensor first(filter_shape), second(filter_shape);
  for (Tensor* d_filter : {&first, &second})
    winograd_backward_filter(convolution, x.data<float>(), d_y.data<float>(), d_filter->data<float>());
  EXPECT_TRUE(std::ranges::equal(first.values<float>(), second.values<float>()));
}

// The output of a picture does not depend on those beside it.
TEST(Winograd, PicturesAreIndependent) {
  const Shape x_shape = {5, 9, 6, 16}, filter_shape = {3, 3, 16, 32}, y_shape = {5, 9, 6, 32};
  const Tensor x = random_tensor(x_shape, 1), filter = random_tensor(filter_shape, 2);
  Tensor together(y_shape), alone(y_shape);
  winograd_convolution({window_of(x_shape, filter_shape, {}), 5, 16, 32}, x.data<float>(), filter.data<float>(),
                       together.data<float>());
  for (std::int64_t n = 0; n < 5; ++n)
    winograd_convolution({window_of(x_shape, filter_shape, {}), 1, 16, 32}, x.data<float>() + n * 9 * 6 * 16,
                         filter.data<float>(), alone.data<float>() + n * 9 * 6 * 32);
  EXPECT_TRUE(std::ranges::equal(together.values<float>(), alone.values<float>()));
}

}  // namespace
}  // namespace miniqat::layers::winograd_test
