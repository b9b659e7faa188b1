#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace miniqat::integer {

// The integer engine's arithmetic; docs/integer-arithmetic.md derives it. real = scale * (q - zero_point), as in
// quantize/affine.h, with q an integer in [0, 2^bits - 1].

/// The real numbers of a tensor's integers.
struct Grid {
  float scale = 1;
  /// In [0, quant_max()].
  std::int32_t zero_point = 0;
  /// 2..8.
  int bits = 8;

  std::int32_t quant_max() const { return (1 << bits) - 1; }
  friend bool operator==(const Grid&, const Grid&) = default;
};

/// The smallest and the largest integer that an operation may write: the grid's ends, or less behind a Relu or Relu6.
struct Clamp {
  std::int32_t min = 0;
  std::int32_t max = 255;
  friend bool operator==(const Clamp&, const Clamp&) = default;
};

/// A real number >= 0 as mantissa * 2^-shift: what integers are multiplied by.
struct Multiplier {
  static constexpr std::int32_t kLargestShift = 62;
  /// 0, or in [2^30, 2^31).
  std::int32_t mantissa = 0;
  /// 1..kLargestShift.
  std::int32_t shift = 31;

  double real() const;
  friend bool operator==(const Multiplier&, const Multiplier&) = default;
};

/// The multiplier nearest to `real`: 31 bits of mantissa, which hold any float32 number exactly. (Products and ratios
/// of scales are best computed in float32: that is the number by which other runtimes multiply.) Numbers below 2^-32
/// become 0, since they make less than half of any 32-bit integer. Throws Error for negative numbers, those from 2^30
/// on, and NaN.
Multiplier multiplier_for(double real);

/// Multipliers with one shift, so that their products may be added before anything is rounded. Their mantissas are
/// short enough for the sum of two products with integers of 9 bits, and the rounding, to fit 32 bits: the precision
/// that XNNPACK, LiteRT's engine, has for ADD, and then the same integers.
struct SharedMultipliers {
  static constexpr int kMantissaBits = 21;
  static constexpr std::int32_t kLargestMantissa = 1 << kMantissaBits;
  static constexpr std::int32_t kLargestShift = 31;
  /// Each in [0, kLargestMantissa].
  std::vector<std::int32_t> mantissas = {};
  /// 1..kLargestShift.
  std::int32_t shift = kLargestShift;
  friend bool operator==(const SharedMultipliers&, const SharedMultipliers&) = default;
};

/// The multipliers nearest to `reals`, ties to even, where the largest has 21 bits of mantissa, or as many as the
/// largest shift leaves it. Throws Error for no number at all, negative numbers, those from 2^20 on, and NaN.
SharedMultipliers shared_multipliers_for(std::span<const double> reals);

/// floor(product / 2^shift + 1/2): to the nearest integer, ties upwards, as quantize() rounds in training.
/// product + 2^(shift - 1) must fit 64 bits.
inline std::int64_t round_shift(std::int64_t product, std::int32_t shift) {
  return (product + (std::int64_t{1} << (shift - 1))) >> shift;
}

/// An integer at its place on the output's grid: product * 2^-shift rounded, zero_point added, clamped.
inline std::uint8_t place(std::int64_t product, std::int32_t shift, std::int32_t zero_point, const Clamp& clamp) {
  return static_cast<std::uint8_t>(
      std::clamp<std::int64_t>(round_shift(product, shift) + zero_point, clamp.min, clamp.max));
}

/// Requantization: the accumulator `sum`, at some scale, on the grid of another. multiplier = scale of sum / scale of
/// output.
inline std::uint8_t requantize(std::int32_t sum, const Multiplier& multiplier, std::int32_t zero_point,
                               const Clamp& clamp) {
  return place(static_cast<std::int64_t>(sum) * multiplier.mantissa, multiplier.shift, zero_point, clamp);
}

/// The nearest integer on the grid for a real number, ties upwards: by the formula of quantize/affine.h, operation by
/// operation, so that it is the integer of training's numbers also where they are close to a tie. NaN gives the zero
/// point.
std::uint8_t quantize(const Grid& grid, float real);
/// scale * (q - zero_point).
inline float dequantize(const Grid& grid, std::int32_t q) {
  return static_cast<float>(q - grid.zero_point) * grid.scale;
}

/// For each byte of a picture, the integer of the same number on the input's grid. `bytes` is the grid of 8 bits on
/// which the pictures' bytes are the integers; where it is the input's, each byte stays what it is.
std::array<std::uint8_t, 256> input_table(const Grid& bytes, const Grid& input);

}  // namespace miniqat::integer
