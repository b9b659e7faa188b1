#pragma once

#include <cstdint>

namespace miniqat::layers::reference {

/// x * relu6(x + 3) / 6, in its three parts: so that -infinity gives 0.
template <class T>
void hard_swish(std::int64_t n, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] <= -3 ? T(0) : x[i] >= 3 ? x[i] : x[i] * (x[i] + 3) / 6;
}

template <class T>
void hard_swish_d_x(std::int64_t n, const T* x, const T* d_y, T* d_x) {
  for (std::int64_t i = 0; i < n; ++i) d_x[i] = x[i] <= -3 ? T(0) : x[i] >= 3 ? d_y[i] : d_y[i] * (2 * x[i] + 3) / 6;
}

}  // namespace miniqat::layers::reference
