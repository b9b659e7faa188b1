#pragma once

#include <cstdint>

namespace miniqat::layers::reference {

template <class T>
void relu(std::int64_t n, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? T(0) : x[i];
}

template <class T>
void relu_d_x(std::int64_t n, const T* x, const T* d_y, T* d_x) {
  for (std::int64_t i = 0; i < n; ++i) d_x[i] = x[i] > 0 ? d_y[i] : T(0);
}

template <class T>
void relu6(std::int64_t n, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? T(0) : x[i] > 6 ? T(6) : x[i];
}

template <class T>
void relu6_d_x(std::int64_t n, const T* x, const T* d_y, T* d_x) {
  for (std::int64_t i = 0; i < n; ++i) d_x[i] = x[i] > 0 && x[i] < 6 ? d_y[i] : T(0);
}

}  // namespace miniqat::layers::reference
