#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/reference/random_word.h"

namespace miniqat::layers::reference {

/// The gradient of a layer's output as bytes, by stochastic rounding (Gupta et al. 2015, "Deep Learning with Limited
/// Numerical Precision"): what they stand for is the gradient in the mean over the random words, to 2^-16 of a step.
/// For products with integers, whose sums are exact then. With g = d_y * gradient_scales() in column c:
///
///   step = largest |g| / 127        of a picture (for the gradient of the input), of all (for that of the filter)
///   byte = floor(g / step + u)      u in [0, 1): 16 bits of the word of the element
///
/// All in float32, 127 / largest rounded before it is multiplied, so that fast loops have the same bytes. A picture
/// whose g are all below kSmallest has step 0; one with a NaN or an infinity has step NaN. The bytes are 0 then.
struct ByteGradient {
  static constexpr float kSmallest = 1e-30f;

  /// [pictures, elements of one]
  std::vector<std::int8_t> for_input;
  std::vector<float> input_steps;
  std::vector<std::int8_t> for_filter;
  float filter_step = 0;
};

/// The scales of the filter's grids. A column of zeros alone has the grid of an empty range, whose scale is 1: any
/// other would do, and so large a one would leave nothing of the others' gradients. It gets the smallest of all.
inline std::vector<float> gradient_scales(std::vector<float> scales, const std::vector<bool>& only_zeros) {
  float smallest = 1;
  for (const float scale : scales)
    if (!(scale >= smallest)) smallest = scale;
  for (std::size_t c = 0; c < scales.size(); ++c)
    if (only_zeros[c] && scales[c] == 1) scales[c] = smallest;
  return scales;
}

/// The byte of g with 16 random bits.
inline std::int8_t stochastic_byte(float g, float inverse, std::uint32_t bits) {
  const float moved = g * inverse + (128 + static_cast<float>(bits) * 0x1p-16f);
  return static_cast<std::int8_t>(static_cast<int>(std::clamp(moved, 1.0f, 255.0f)) - 128);
}

inline float largest_magnitude(std::span<const float> g) {
  float largest = 0;
  for (const float number : g) {
    if (!std::isfinite(number)) return NAN;
    largest = std::max(largest, std::abs(number));
  }
  return largest < ByteGradient::kSmallest ? 0 : largest;
}

/// 127 / largest, and 0 where that is no number.
inline float inverse_of_step(float largest) { return largest > 0 ? 127 / largest : 0; }

/// d_y: float32 [pictures, ..., columns]. Element 0 is number `first` of those that the key draws words for.
inline ByteGradient byte_gradient(std::span<const float> d_y, std::int64_t pictures, std::span<const float> scales,
                                  std::uint64_t key, std::int64_t first) {
  const std::int64_t n = static_cast<std::int64_t>(d_y.size()), of_picture = pictures == 0 ? 0 : n / pictures;
  std::vector<float> g(d_y.begin(), d_y.end());
  for (std::int64_t i = 0; i < n; ++i) g[i] *= scales[i % scales.size()];
  ByteGradient result;
  const float largest_of_all = largest_magnitude(g);
  result.filter_step = largest_of_all / 127;
  for (std::int64_t p = 0; p < pictures; ++p) {
    const float largest = largest_magnitude(std::span(g).subspan(p * of_picture, of_picture));
    result.input_steps.push_back(largest / 127);
    for (std::int64_t i = p * of_picture; i < (p + 1) * of_picture; ++i) {
      const std::uint32_t word = random_word(key, first + i);
      result.for_input.push_back(std::isnan(largest) ? 0
                                                     : stochastic_byte(g[i], inverse_of_step(largest), word & 0xffff));
      result.for_filter.push_back(
          std::isnan(largest_of_all) ? 0 : stochastic_byte(g[i], inverse_of_step(largest_of_all), word >> 16));
    }
  }
  return result;
}

}  // namespace miniqat::layers::reference
