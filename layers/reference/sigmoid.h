#pragma once

#include <cmath>
#include <cstdint>

namespace miniqat::layers::reference {

template <class T>
void sigmoid(std::int64_t n, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = 1 / (1 + std::exp(-x[i]));
}

/// y' = y (1 - y), where 1 - y = sigmoid(-x).
template <class T>
void sigmoid_d_x(std::int64_t n, const T* x, const T* d_y, T* d_x) {
  for (std::int64_t i = 0; i < n; ++i) d_x[i] = d_y[i] / ((1 + std::exp(-x[i])) * (1 + std::exp(x[i])));
}

}  // namespace miniqat::layers::reference
