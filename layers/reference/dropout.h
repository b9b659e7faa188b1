#pragma once

#include <cstdint>

#include "core/random.h"

namespace miniqat::layers::reference {

/// How many of the 2^32 values of a random word mean "dropped".
inline std::uint64_t dropout_threshold(double rate) { return static_cast<std::uint64_t>(rate * 4294967296.0); }

/// Element i looks at word i % 4 of philox(key, i / 4). Its own inverse in shape: d_x is made from d_y in the same way.
template <class T>
void dropout(std::int64_t n, double rate, std::uint64_t key, const T* x, T* y) {
  const T scale = static_cast<T>(1 / (1 - rate));
  for (std::int64_t i = 0; i < n; ++i) {
    const bool dropped = philox(key, i / 4)[i % 4] < dropout_threshold(rate);
    y[i] = x[i] * (dropped ? T(0) : scale);
  }
}

}  // namespace miniqat::layers::reference
