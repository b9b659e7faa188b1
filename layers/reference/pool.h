#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/tensors/shape.h"
#include "core/tensors/window.h"

/// The specification of MaxPool and AvgPool. x [n, h, w, c], y [n, oh, ow, c], row-major.
namespace miniqat::layers::reference {

/// True when `value` takes the place of the largest one so far: a tie leaves the first, and the first NaN stays.
/// (Without short circuits, so that loops over it have no branches.)
template <class T>
bool exceeds(T value, T best) {
  return (value > best) | ((value != value) & (best == best));
}

/// Maxima, and where each one came from: `source` [n, oh, ow, c] are indices into x.
template <class T>
void max_pool(const Window2d& window, const Shape& x_shape, const Shape& y_shape, const T* x, T* y,
              std::vector<std::int64_t>& source) {
  const std::int64_t channels = x_shape[3];
  source.assign(static_cast<std::size_t>(y_shape.elements()), -1);
  for_each_tap(x_shape[0], window, [&](const Tap& tap) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t from = tap.input * channels + c;
      const std::int64_t to = tap.output * channels + c;
      if (source[to] < 0 || exceeds(x[from], y[to])) {
        y[to] = x[from];
        source[to] = from;
      }
    }
  });
}

template <class T>
void max_pool_backward(const Shape& x_shape, const std::vector<std::int64_t>& source, const T* d_y, T* d_x) {
  std::fill_n(d_x, x_shape.elements(), T{0});
  for (std::size_t i = 0; i < source.size(); ++i) d_x[source[i]] += d_y[i];
}

/// The number of taps of each output pixel [n, oh, ow] on the image and not its padding.
inline std::vector<std::int64_t> taps_in_image(std::int64_t batch, const Window2d& window) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(batch * window.rows.output * window.columns.output), 0);
  for_each_tap(batch, window, [&](const Tap& tap) { ++count[tap.output]; });
  return count;
}

template <class T>
void avg_pool(const Window2d& window, const Shape& x_shape, const Shape& y_shape, const T* x, T* y) {
  const std::int64_t channels = x_shape[3];
  const std::vector<std::int64_t> count = taps_in_image(x_shape[0], window);
  std::fill_n(y, y_shape.elements(), T{0});
  for_each_tap(x_shape[0], window, [&](const Tap& tap) {
    for (std::int64_t c = 0; c < channels; ++c)
      y[tap.output * channels + c] += x[tap.input * channels + c] / static_cast<T>(count[tap.output]);
  });
}

template <class T>
void avg_pool_backward(const Window2d& window, const Shape& x_shape, const T* d_y, T* d_x) {
  const std::int64_t channels = x_shape[3];
  const std::vector<std::int64_t> count = taps_in_image(x_shape[0], window);
  std::fill_n(d_x, x_shape.elements(), T{0});
  for_each_tap(x_shape[0], window, [&](const Tap& tap) {
    for (std::int64_t c = 0; c < channels; ++c)
      d_x[tap.input * channels + c] += d_y[tap.output * channels + c] / static_cast<T>(count[tap.output]);
  });
}

}  // namespace miniqat::layers::reference
