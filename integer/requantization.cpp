#include "integer/requantization.h"

#include <algorithm>

namespace miniqat::integer {
namespace {

constexpr std::int32_t kNormal = 1 << 30;
constexpr std::int32_t kLargestShift = 62;
/// A multiplier of 2^9 already takes every sum but 0 beyond a grid's end.
constexpr std::int32_t kSmallestShift = 21;
constexpr std::int32_t kHalf = 33;
constexpr std::int32_t kLimit = 1 << 18;

}  // namespace

RequantizationFactors requantization_factors(const Multiplier& multiplier) {
  auto [mantissa, shift] = multiplier;
  // As many leading bits as multiplier_for() gives, for the sake of mantissas that somebody else wrote.
  for (; mantissa > 0 && mantissa < kNormal && shift < kLargestShift; ++shift) mantissa *= 2;
  // Less than half of any sum.
  if (mantissa < kNormal) return {};
  if (shift < kSmallestShift) {
    mantissa = kNormal;
    shift = kSmallestShift;
  }
  if (shift < kHalf) return {.mantissa = mantissa, .rounding = 1, .right = 1, .left = kHalf - shift, .limit = kLimit};
  return {.mantissa = mantissa, .rounding = std::int32_t{1} << (shift - kHalf), .right = shift - 32};
}

Requantization::Requantization(std::span<const Multiplier> multipliers, std::int64_t size, std::int32_t zero_point,
                               const Clamp& clamp)
    : zero_point(zero_point), clamp(clamp) {
  for (Tensor* array : {&mantissas, &roundings, &rights, &lefts, &limits}) *array = Tensor(Shape{size}, DType::kInt32);
  for (std::size_t i = 0; i < multipliers.size(); ++i) {
    const RequantizationFactors factors = requantization_factors(multipliers[i]);
    mantissas.data<std::int32_t>()[i] = factors.mantissa;
    roundings.data<std::int32_t>()[i] = factors.rounding;
    rights.data<std::int32_t>()[i] = factors.right;
    lefts.data<std::int32_t>()[i] = factors.left;
    limits.data<std::int32_t>()[i] = factors.limit;
    any_left = any_left || factors.left != 0;
  }
}

Requantization::View Requantization::view() const {
  return {.mantissas = mantissas.data<std::int32_t>(),
          .roundings = roundings.data<std::int32_t>(),
          .rights = rights.data<std::int32_t>(),
          .lefts = lefts.data<std::int32_t>(),
          .limits = limits.data<std::int32_t>(),
          .any_left = any_left,
          .zero_point = zero_point,
          .lowest = clamp.min,
          .highest = clamp.max};
}

}  // namespace miniqat::integer
