#pragma once

#include <cstdint>

namespace miniqat::layers {

// The data that a chain keeps for the gradients of a trained range: two bytes an element, instead of the number before
// rounding.

/// Outside of the range; any other code is (y - v) / scale in steps of 1 / kRoundingCodes.
inline constexpr std::int16_t kBelowRange = -32768;
inline constexpr std::int16_t kAboveRange = 32767;
/// Enough that the sums below equal those of the numbers themselves up to a few float32 roundings. They leave room for
/// a little more than half a step, because y - v is rounded, too, and a grid may have 2^16 steps.
inline constexpr float kRoundingCodes = 60000;

/// codes of n numbers v that a quantizer made y of, which leaves [lowest, highest] unclamped. A NaN has code 0.
void rounding_codes(const float* v, const float* y, std::int64_t n, float scale, float lowest, float highest,
                    std::int16_t* codes);

struct RoundingSums {
  /// d_y below the range, and above it.
  double below = 0;
  double above = 0;
  /// d_y * (y - v) in between, in units of the scale.
  double inside = 0;
};

/// Over n elements, shared between the threads.
RoundingSums rounding_sums(const float* d_y, const std::int16_t* codes, std::int64_t n);

}  // namespace miniqat::layers
