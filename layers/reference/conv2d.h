#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/tensors/shape.h"
#include "core/tensors/window.h"

namespace miniqat::layers::reference {

/// The specification of Conv2D and DepthwiseConv2d. x [n, h, w, in], filter [kh, kw, in, width], y [n, oh, ow, out],
/// all row-major. A full convolution has an output channel for each `width`, a depthwise one for each pair of in and
/// width.
struct Convolution {
  Window2d window;
  Shape x;
  Shape filter;
  bool depthwise = false;

  /// Calls visit(o, i, f) for every product x[i] * filter[f] that y[o] sums up.
  template <class Visit>
  void for_each_product(const Visit& visit) const {
    const std::int64_t in = filter[2], width = filter[3], out = depthwise ? in * width : width;
    for_each_tap(x[0], window, [&](const Tap& tap) {
      for (std::int64_t i = 0; i < in; ++i)
        for (std::int64_t w = 0; w < width; ++w)
          visit(tap.output * out + (depthwise ? i * width + w : w), tap.input * in + i,
                (tap.window * in + i) * width + w);
    });
  }
};

template <class T>
void conv2d(const Convolution& convolution, const T* x, const T* filter, std::span<T> y) {
  std::ranges::fill(y, T{0});
  convolution.for_each_product([&](auto o, auto i, auto f) { y[o] += x[i] * filter[f]; });
}

/// Every product passes its output's gradient on to both factors.
template <class T>
void conv2d_backward_input(const Convolution& convolution, const T* d_y, const T* filter, std::span<T> d_x) {
  std::ranges::fill(d_x, T{0});
  convolution.for_each_product([&](auto o, auto i, auto f) { d_x[i] += d_y[o] * filter[f]; });
}

template <class T>
void conv2d_backward_filter(const Convolution& convolution, const T* x, const T* d_y, std::span<T> d_filter) {
  std::ranges::fill(d_filter, T{0});
  convolution.for_each_product([&](auto o, auto i, auto f) { d_filter[f] += x[i] * d_y[o]; });
}

}  // namespace miniqat::layers::reference
