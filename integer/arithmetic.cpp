#include "integer/arithmetic.h"

#include <cmath>

#include "core/text/error.h"

namespace miniqat::integer {
namespace {

constexpr int kMantissaBits = 31;
constexpr int kLargestExponent = 30;
constexpr int kSmallestExponent = -31;
constexpr int kLargestSharedExponent = 20;

}  // namespace

double Multiplier::real() const { return std::ldexp(static_cast<double>(mantissa), -shift); }

Multiplier multiplier_for(double real) {
  if (!(real >= 0) || real >= std::ldexp(1.0, kLargestExponent))
    fail("a multiplier must be in [0, 2^30), but is ", real);
  int exponent = 0;
  const double fraction = std::frexp(real, &exponent);
  std::int64_t mantissa = std::llround(std::ldexp(fraction, kMantissaBits));
  if (mantissa == std::int64_t{1} << kMantissaBits) {
    mantissa /= 2;
    ++exponent;
  }
  if (mantissa == 0 || exponent < kSmallestExponent) return {};
  if (exponent > kLargestExponent) fail("a multiplier must be in [0, 2^30), but is ", real);
  return {.mantissa = static_cast<std::int32_t>(mantissa), .shift = kMantissaBits - exponent};
}

SharedMultipliers shared_multipliers_for(std::span<const double> reals) {
  if (reals.empty()) fail("shared multipliers of no numbers");
  for (const double real : reals)
    if (!(real >= 0) || real >= std::ldexp(1.0, kLargestSharedExponent))
      fail("a shared multiplier must be in [0, 2^20), but is ", real);
  int exponent = 0;
  std::frexp(*std::ranges::max_element(reals), &exponent);
  SharedMultipliers shared{.shift =
                               std::min(SharedMultipliers::kMantissaBits - exponent, SharedMultipliers::kLargestShift)};
  for (const double real : reals)
    shared.mantissas.push_back(static_cast<std::int32_t>(std::nearbyint(std::ldexp(real, shared.shift))));
  return shared;
}

std::uint8_t quantize(const Grid& grid, float real) {
  const float min = dequantize(grid, 0), max = dequantize(grid, grid.quant_max());
  const float steps = (std::clamp(real, min, max) - min) / grid.scale;
  if (std::isnan(steps)) return static_cast<std::uint8_t>(grid.zero_point);
  return static_cast<std::uint8_t>(std::min(std::floor(steps + 0.5f), static_cast<float>(grid.quant_max())));
}

std::array<std::uint8_t, 256> input_table(const Grid& bytes, const Grid& input) {
  std::array<std::uint8_t, 256> integers;
  for (int byte = 0; byte < 256; ++byte) integers[byte] = quantize(input, dequantize(bytes, byte));
  return integers;
}

}  // namespace miniqat::integer
