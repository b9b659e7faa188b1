#pragma once

#include <algorithm>
#include <cstdint>

#include "core/shape.h"
#include "core/window.h"

/// The specification of Conv2D. x [n, h, w, in], filter [kh, kw, in, out], y [n, oh, ow, out], all row-major.
namespace miniqat::layers::reference {

template <class T>
void conv2d(const Window2d& window, const Shape& x_shape, const Shape& filter_shape, const Shape& y_shape, const T* x,
            const T* filter, T* y) {
  const std::int64_t in = filter_shape[2];
  const std::int64_t out = filter_shape[3];
  std::fill_n(y, y_shape.elements(), T{0});
  for_each_tap(x_shape[0], window, [&](const Tap& tap) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o)
        y[tap.output * out + o] += x[tap.input * in + i] * filter[(tap.window * in + i) * out + o];
  });
}

/// Every product x * filter above passes its output's gradient on to both factors.
template <class T>
void conv2d_backward_input(const Window2d& window, const Shape& x_shape, const Shape& filter_shape, const T* d_y,
                           const T* filter, T* d_x) {
  const std::int64_t in = filter_shape[2];
  const std::int64_t out = filter_shape[3];
  std::fill_n(d_x, x_shape.elements(), T{0});
  for_each_tap(x_shape[0], window, [&](const Tap& tap) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o)
        d_x[tap.input * in + i] += d_y[tap.output * out + o] * filter[(tap.window * in + i) * out + o];
  });
}

template <class T>
void conv2d_backward_filter(const Window2d& window, const Shape& x_shape, const Shape& filter_shape, const T* x,
                            const T* d_y, T* d_filter) {
  const std::int64_t in = filter_shape[2];
  const std::int64_t out = filter_shape[3];
  std::fill_n(d_filter, filter_shape.elements(), T{0});
  for_each_tap(x_shape[0], window, [&](const Tap& tap) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o)
        d_filter[(tap.window * in + i) * out + o] += x[tap.input * in + i] * d_y[tap.output * out + o];
  });
}

}  // namespace miniqat::layers::reference
