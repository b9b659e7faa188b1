#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
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

/// The same integers as `multiplier` gives, after the clamp to a grid of at most 8 bits.
RequantizationFactors requantization_factors(const Multiplier& multiplier);

/// Those of a layer's outputs as arrays of int32, for loops over channels.
struct Requantization {
  /// One multiplier an output; `size` >= multipliers.size() says how many elements the arrays get, the last ones zeros.
  Requantization(std::span<const Multiplier> multipliers, std::int64_t size, std::int32_t zero_point,
                 const Clamp& clamp);

  /// The arrays, for loops; valid as long as this.
  struct View {
    const std::int32_t* mantissas;
    const std::int32_t* roundings;
    const std::int32_t* rights;
    const std::int32_t* lefts;
    const std::int32_t* limits;
    /// Some `left` or `limit` matters.
    bool any_left;
    std::int32_t zero_point;
    std::int32_t lowest;
    std::int32_t highest;
  };
  View view() const;

  Tensor mantissas, roundings, rights, lefts, limits;
  bool any_left = false;
  std::int32_t zero_point;
  Clamp clamp;
};

}  // namespace miniqat::integer
