#pragma once

#include <cmath>
#include <cstdint>

namespace miniqat::layers::reference {

/// One row after the other; y must not be x.
template <class T>
void softmax(std::int64_t rows, std::int64_t channels, const T* x, T* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    T largest = x[0];
    for (std::int64_t c = 1; c < channels; ++c) largest = x[c] > largest ? x[c] : largest;
    T sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += std::exp(x[c] - largest);
    for (std::int64_t c = 0; c < channels; ++c) y[c] = std::exp(x[c] - largest) / sum;
  }
}

/// d_x[c] = sum over k of d_y[k] * d y_k / d x_c, where d y_k / d x_c = y_k * ((k == c) - y_c).
template <class T>
void softmax_d_x(std::int64_t rows, std::int64_t channels, const T* y, const T* d_y, T* d_x) {
  for (std::int64_t r = 0; r < rows; ++r, y += channels, d_y += channels, d_x += channels)
    for (std::int64_t c = 0; c < channels; ++c) {
      d_x[c] = 0;
      for (std::int64_t k = 0; k < channels; ++k) d_x[c] += d_y[k] * y[k] * ((k == c ? 1 : 0) - y[c]);
    }
}

}  // namespace miniqat::layers::reference
