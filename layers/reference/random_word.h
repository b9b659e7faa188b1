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
inline std::uint32_t random_word(std::uint64_t key, std::int64_t i) {
  return scramble(scramble(static_cast<std::uint32_t>(i) ^ static_cast<std::uint32_t>(key)) ^
                  static_cast<std::uint32_t>(key >> 32));
}

}  // namespace miniqat::layers::reference
