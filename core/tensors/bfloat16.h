#pragma once

#include <bit>
#include <cstdint>

namespace miniqat {

/// The upper half of a float32: 8 bits of significand. Integers up to 256 are exact.
struct Bfloat16 {
  std::uint16_t bits = 0;

  /// To nearest, ties to even; NaN stays NaN.
  static Bfloat16 rounded(float number) {
    const auto bits = std::bit_cast<std::uint32_t>(number);
    const std::uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, quiet = bits >> 16 | 0x40u;
    return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest)};
  }
  float number() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

}  // namespace miniqat
