#pragma once

#include <cstdint>

namespace miniqat::layers::reference {

/// The finaliser of MurmurHash3 (Appleby 2011): every bit of x changes every bit of the result.
inline std::uint32_t scramble(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}

/// The random word of element i: half of the key before each of two scrambles. Needs nothing but 32-bit arithmetic,
/// which vectors of every instruction set have.
inline std::uint32_t dropout_word(std::uint64_t key, std::int64_t i) {
  return scramble(scramble(static_cast<std::uint32_t>(i) ^ static_cast<std::uint32_t>(key)) ^
                  static_cast<std::uint32_t>(key >> 32));
}

/// The number of the 2^32 values of a random word that mean "dropped".
inline std::uint64_t dropout_threshold(double rate) { return static_cast<std::uint64_t>(rate * 4294967296.0); }

/// Drops elements of x and scales the others; d_x is made from d_y in the same way. x[0] is element number `first`.
template <class T>
void dropout(std::int64_t n, double rate, std::uint64_t key, std::int64_t first, const T* x, T* y) {
  const T scale = static_cast<T>(1 / (1 - rate));
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] * (dropout_word(key, first + i) < dropout_threshold(rate) ? T(0) : scale);
}

}  // namespace miniqat::layers::reference
