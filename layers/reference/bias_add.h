#pragma once

#include <cstdint>

namespace miniqat::layers::reference {

template <class T>
void bias_add(std::int64_t rows, std::int64_t channels, const T* x, const T* bias, T* y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) y[r * channels + c] = x[r * channels + c] + bias[c];
}

/// d_bias[c] = sum over r of d_y[r, c].
template <class T>
void bias_add_d_bias(std::int64_t rows, std::int64_t channels, const T* d_y, T* d_bias) {
  for (std::int64_t c = 0; c < channels; ++c) {
    d_bias[c] = 0;
    for (std::int64_t r = 0; r < rows; ++r) d_bias[c] += d_y[r * channels + c];
  }
}

}  // namespace miniqat::layers::reference
