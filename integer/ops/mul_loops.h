// The loops of integer/ops/mul.cpp (see core/kernels/per_instruction_set.h).

void multiply_scaled(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                     const RequantizationFactors& factors, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const std::int32_t zero_a = pair.zero_points[0], zero_b = pair.zero_points[1], zero_point = pair.zero_point;
  const Clamp clamp = pair.clamp;
  for (std::int64_t i = 0; i < n; ++i) y[i] = requantized((a[i] - zero_a) * (b[i] - zero_b), q, zero_point, clamp);
}

/// By the first integer of b.
void multiply_scaled_by_one(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                            const RequantizationFactors& factors, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const std::int32_t zero_a = pair.zero_points[0], factor = b[0] - pair.zero_points[1], zero_point = pair.zero_point;
  const Clamp clamp = pair.clamp;
  for (std::int64_t i = 0; i < n; ++i) y[i] = requantized((a[i] - zero_a) * factor, q, zero_point, clamp);
}
