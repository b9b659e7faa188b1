#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/tensors/random.h"
#include "layers/kernels/direct_convolution.h"
#include "layers/reference/conv2d.h"
#include "tests/layers/convolution_case.h"
#include "tests/layers/op_runner.h"

namespace miniqat::testing {

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

struct ConvolutionKernels {
  void (*forward)(const layers::DirectConvolution&, const float* x, const float* filter, float* y);
  void (*backward_input)(const layers::DirectConvolution&, const float* d_y, const float* filter, float* d_x);
  void (*backward_filter)(const layers::DirectConvolution&, const float* x, const float* d_y, float* d_filter);
};

/// The kernels themselves, whichever the op would take, against the reference loops in double.
inline void expect_kernels_are_reference(const ConvolutionKernels& kernels, const ConvolutionCase& c, std::int64_t in,
                                         std::int64_t out) {
  const Tensor x = random_tensor(c.x(in), 1);
  const Tensor filter = random_tensor(c.filter(in, out), 2);
  const Window2d window = layers::window_of(x.shape(), filter.shape(), c.attributes);
  const Shape y_shape = {c.images[0], window.rows.output, window.columns.output, out};
  const Tensor d_y = random_tensor(y_shape, 3);
  Guarded y(y_shape), d_x(x.shape()), d_filter(filter.shape());
  const layers::DirectConvolution convolution = {.window = window, .batch = c.images[0], .in = in, .out = out};
  kernels.forward(convolution, x.data<float>(), filter.data<float>(), y.data());
  kernels.backward_input(convolution, d_y.data<float>(), filter.data<float>(), d_x.data());
  kernels.backward_filter(convolution, x.data<float>(), d_y.data<float>(), d_filter.data());

  const Tensor wide_x = x.to(DType::kFloat64), wide_filter = filter.to(DType::kFloat64);
  const Tensor wide_d_y = d_y.to(DType::kFloat64);
  Tensor expected_y(y_shape, DType::kFloat64), expected_d_x(x.shape(), DType::kFloat64);
  Tensor expected_d_filter(filter.shape(), DType::kFloat64);
  const layers::reference::Convolution naive = {window, x.shape(), filter.shape()};
  layers::reference::conv2d(naive, wide_x.data<double>(), wide_filter.data<double>(), expected_y.values<double>());
  layers::reference::conv2d_backward_input(naive, wide_d_y.data<double>(), wide_filter.data<double>(),
                                           expected_d_x.values<double>());
  layers::reference::conv2d_backward_filter(naive, wide_x.data<double>(), wide_d_y.data<double>(),
                                            expected_d_filter.values<double>());
  const std::string what = c.text(in, out);
  expect_close(y.tensor(), expected_y, "y of " + what, 1e-5);
  expect_close(d_x.tensor(), expected_d_x, "d_x of " + what, 1e-5);
  expect_close(d_filter.tensor(), expected_d_filter, "d_filter of " + what, 1e-5);
  EXPECT_TRUE(y.intact() && d_x.intact() && d_filter.intact()) << "written beyond the end, " << what;
}

}  // namespace miniqat::testing
