#pragma once

#include <cstdint>
#include <span>

#include "core/tensors/tensor.h"
#include "integer/arithmetic.h"

namespace miniqat::integer {

// Requantization for vectors of 32 bits. With p = sum * mantissa in 64 bits and shift >= 33, the rounding constant
// 2^(shift - 1) is a multiple of 2^32, so that it may be added to the upper half of p alone:
//
//   (p + 2^(shift - 1)) >> shift  =  ((p >> 32) + 2^(shift - 33)) >> (shift - 32)
//
// Upper half and constant stay below 2^30 + 2^29: nothing leaves 32 bits. A smaller shift, that is a multiplier of at
// least 1/4, is made one of 33 by shifting the sum to the left instead. The sum is held within 2^18 either way first,
// where even a multiplier of 1/4 has left the grid far behind.

/// The factors of one multiplier: y = ((high half of ((sum held within +-limit) << left) * mantissa) + rounding) >>
/// right.
struct RequantizationFactors {
  std::int32_t mantissa = 0;
  std::int32_t rounding = 0;
  std::int32_t right = 1;
  std::int32_t left = 0;
  std::int32_t limit = INT32_MAX;
};

/// The integers that `multiplier` gives, after the clamp to a grid of at most 8 bits.
RequantizationFactors requantization_factors(const Multiplier& multiplier);

/// A sum on the output's grid, for loops that vectors are made of. (Always inlined: it is compiled for the CPU of the
/// loop, core/kernels/per_instruction_set.h.)
[[gnu::always_inline]] inline std::uint8_t requantized(std::int32_t sum, const RequantizationFactors& q,
                                                       std::int32_t zero_point, const Clamp& clamp) {
  sum = sum > q.limit ? q.limit : sum < -q.limit ? -q.limit : sum;
  const std::int64_t product = static_cast<std::int64_t>(sum << q.left) * q.mantissa;
  const std::int32_t place = ((static_cast<std::int32_t>(product >> 32) + q.rounding) >> q.right) + zero_point;
  return static_cast<std::uint8_t>(place < clamp.min ? clamp.min : place > clamp.max ? clamp.max : place);
}

/// The factors of a layer's outputs as arrays of int32, for loops over channels. The output's zero point is part of the
/// rounding constant, shifted to the left by `right`, where 32 bits have room for it, as they nearly always have.
struct Requantization {
  /// One multiplier an output; `size` >= multipliers.size() says how many elements the arrays get, the last ones zeros.
  Requantization(std::span<const Multiplier> multipliers, std::int64_t size, std::int32_t zero_point,
                 const Clamp& clamp);

  /// The arrays, for loops; valid as long as this.
  struct View {
    const std::int32_t* mantissas;
    const std::int32_t* roundings;
    const std::int32_t* rights;
    /// The following matter only where something is `unusual`.
    const std::int32_t* lefts;
    const std::int32_t* limits;
    /// Added at last: the zero points that are no part of the rounding.
    const std::int32_t* zero_points;
    bool unusual;
    std::int32_t lowest;
    std::int32_t highest;
  };
  View view() const;

 private:
  Tensor mantissas_, roundings_, rights_, lefts_, limits_, zero_points_;
  bool unusual_ = false;
  Clamp clamp_;
};

}  // namespace miniqat::integer
