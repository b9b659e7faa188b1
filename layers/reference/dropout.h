#pragma once

#include <cstdint>

#include "layers/reference/random_word.h"

namespace miniqat::layers::reference {

/// The number of the 2^32 values of a random word that mean "dropped".
inline std::uint64_t dropout_threshold(double rate) { return static_cast<std::uint64_t>(rate * 4294967296.0); }

/// Drops elements of x and scales the others; d_x is made from d_y in the same way. x[0] is element number `first`.
template <class T>
void dropout(std::int64_t n, double rate, std::uint64_t key, std::int64_t first, const T* x, T* y) {
  const T scale = static_cast<T>(1 / (1 - rate));
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] * (random_word(key, first + i) < dropout_threshold(rate) ? T(0) : scale);
}

}  // namespace miniqat::layers::reference
