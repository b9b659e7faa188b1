#include "layers/kernels/direct_convolution.h"

#include <gtest/gtest.h>

#include "layers/reference/conv2d.h"
#include "tests/fewer_cases.h"
#include "tests/layers/convolution_case.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::direct_convolution_test {
namespace {

using testing::expect_close;
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

/// Memory with NaN on both sides of a tensor's place, to see writes beyond it.
class Guarded {
 public:
  explicit Guarded(const Shape& shape) : shape_(shape), memory_(Shape{shape.elements() + 2 * kGuard}) {
    std::ranges::fill(memory_.values<float>(), NAN);
  }

  float* data() { return memory_.data<float>() + kGuard; }

  Tensor tensor() {
    Tensor copy(shape_);
    std::copy_n(data(), shape_.elements(), copy.data<float>());
    return copy;
  }

  bool intact() const {
    const auto values = memory_.values<float>();
    const auto is_nan = [](float value) { return std::isnan(value); };
    return std::ranges::all_of(values.first(kGuard), is_nan) && std::ranges::all_of(values.last(kGuard), is_nan);
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  Shape shape_;
  Tensor memory_;
};

/// The kernels themselves, whichever the op would take, against the reference loops in double.
void expect_reference(const Case& c, std::int64_t in, std::int64_t out) {
  const Tensor x = random_tensor(c.x(in), 1);
  const Tensor filter = random_tensor(c.filter(in, out), 2);
  const Window2d window = window_of(x.shape(), filter.shape(), c.attributes);
  const Shape y_shape = {c.images[0], window.rows.output, window.columns.output, out};
  const Tensor d_y = random_tensor(y_shape, 3);
  Guarded y(y_shape), d_x(x.shape()), d_filter(filter.shape());
  const DirectConvolution convolution = {.window = window, .batch = c.images[0], .in = in, .out = out};
  direct_convolution(convolution, x.data<float>(), filter.data<float>(), y.data());
  direct_convolution_backward_input(convolution, d_y.data<float>(), filter.data<float>(), d_x.data());
  direct_convolution_backward_filter(convolution, x.data<float>(), d_y.data<float>(), d_filter.data());

  const Tensor wide_x = x.to(DType::kFloat64), wide_filter = filter.to(DType::kFloat64);
  const Tensor wide_d_y = d_y.to(DType::kFloat64);
  Tensor expected_y(y_shape, DType::kFloat64), expected_d_x(x.shape(), DType::kFloat64);
  Tensor expected_d_filter(filter.shape(), DType::kFloat64);
  const reference::Convolution naive = {window, x.shape(), filter.shape()};
  reference::conv2d(naive, wide_x.data<double>(), wide_filter.data<double>(), expected_y.values<double>());
  reference::conv2d_backward_input(naive, wide_d_y.data<double>(), wide_filter.data<double>(),
                                   expected_d_x.values<double>());
  reference::conv2d_backward_filter(naive, wide_x.data<double>(), wide_d_y.data<double>(),
                                    expected_d_filter.values<double>());
  const std::string what = c.text(in, out);
  expect_close(y.tensor(), expected_y, "y of " + what, 1e-5);
  expect_close(d_x.tensor(), expected_d_x, "d_x of " + what, 1e-5);
  expect_close(d_filter.tensor(), expected_d_filter, "d_filter of " + what, 1e-5);
  EXPECT_TRUE(y.intact() && d_x.intact() && d_filter.intact()) << "written beyond the end, " << what;
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
