// The loops of integer/ops/pair.cpp (see core/kernels/per_instruction_set.h).

/// Two products of 9 and 21 bits, and a rounding constant of at most 2^30: 32 bits hold their sum.
void add_scaled(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                const ScaledSum& s, std::uint8_t* y) {
  const std::int32_t mantissa_a = s.mantissas[0], mantissa_b = s.mantissas[1];
  const std::int32_t zero_a = pair.zero_points[0], zero_b = pair.zero_points[1], zero_point = pair.zero_point;
  const std::int32_t rounding = s.rounding, shift = s.shift;
  const std::int32_t lowest = pair.clamp.min, highest = pair.clamp.max;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t sum = (a[i] - zero_a) * mantissa_a + (b[i] - zero_b) * mantissa_b;
    const std::int32_t place = ((sum + rounding) >> shift) + zero_point;
    y[i] = static_cast<std::uint8_t>(place < lowest ? lowest : place > highest ? highest : place);
  }
}

void multiply_scaled(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                     const RequantizationFactors& factors, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const std::int32_t zero_a = pair.zero_points[0], zero_b = pair.zero_points[1], zero_point = pair.zero_point;
  const Clamp clamp = pair.clamp;
  for (std::int64_t i = 0; i < n; ++i) y[i] = requantized((a[i] - zero_a) * (b[i] - zero_b), q, zero_point, clamp);
}

/// Multiplies by the first integer of b.
void multiply_scaled_by_one(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                            const RequantizationFactors& factors, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const std::int32_t zero_a = pair.zero_points[0], factor = b[0] - pair.zero_points[1], zero_point = pair.zero_point;
  const Clamp clamp = pair.clamp;
  for (std::int64_t i = 0; i < n; ++i) y[i] = requantized((a[i] - zero_a) * factor, q, zero_point, clamp);
}
