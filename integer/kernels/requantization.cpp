#include "integer/kernels/requantization.h"

namespace miniqat::integer {
namespace {

constexpr std::int32_t kNormal = 1 << 30;
constexpr std::int32_t kLargestShift = 62;
/// A multiplier of 2^9 already takes every sum but 0 beyond a grid's end.
constexpr std::int32_t kSmallestShift = 21;
constexpr std::int32_t kHalf = 33;
constexpr std::int32_t kLimit = 1 << 18;
/// 2^8 * 2^20 beside 2^30 + 2^19.
constexpr std::int32_t kRoomForZeroPoint = 20;

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
    : clamp_(clamp) {
  for (Tensor* array : {&mantissas_, &roundings_, &rights_, &lefts_, &limits_, &zero_points_})
    *array = Tensor(Shape{size}, DType::kInt32);
  for (std::size_t i = 0; i < multipliers.size(); ++i) {
    const RequantizationFactors factors = requantization_factors(multipliers[i]);
    const bool fits = factors.right <= kRoomForZeroPoint;
    mantissas_.data<std::int32_t>()[i] = factors.mantissa;
    roundings_.data<std::int32_t>()[i] = factors.rounding + (fits ? zero_point << factors.right : 0);
    rights_.data<std::int32_t>()[i] = factors.right;
    lefts_.data<std::int32_t>()[i] = factors.left;
    limits_.data<std::int32_t>()[i] = factors.limit;
    zero_points_.data<std::int32_t>()[i] = fits ? 0 : zero_point;
    unusual_ = unusual_ || factors.left != 0 || !fits;
  }
}

Requantization::View Requantization::view() const {
  return {.mantissas = mantissas_.data<std::int32_t>(),
          .roundings = roundings_.data<std::int32_t>(),
          .rights = rights_.data<std::int32_t>(),
          .lefts = lefts_.data<std::int32_t>(),
          .limits = limits_.data<std::int32_t>(),
          .zero_points = zero_points_.data<std::int32_t>(),
          .unusual = unusual_,
          .lowest = clamp_.min,
          .highest = clamp_.max};
}

}  // namespace miniqat::integer
