// The loops of integer/kernels/mul.cpp (see core/kernels/per_instruction_set.h).

void multiply_scaled(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                     const RequantizationFactors& factors, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const std::int32_t zero_a = pair.zero_points[0], zero_b = pair.zero_points[1];
  const std::int32_t zero_point = pair.zero_point, lowest = pair.clamp.min, highest = pair.clamp.max;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t product = (a[i] - zero_a) * (b[i] - zero_b);
    product = product > q.limit ? q.limit : product < -q.limit ? -q.limit : product;
    const std::int64_t scaled = static_cast<std::int64_t>(product << q.left) * q.mantissa;
    const std::int32_t place = ((static_cast<std::int32_t>(scaled >> 32) + q.rounding) >> q.right) + zero_point;
    y[i] = static_cast<std::uint8_t>(place < lowest ? lowest : place > highest ? highest : place);
  }
}

/// By the first integer of b.
void multiply_scaled_by_one(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                            const RequantizationFactors& factors, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const std::int32_t zero_a = pair.zero_points[0], factor = b[0] - pair.zero_points[1];
  const std::int32_t zero_point = pair.zero_point, lowest = pair.clamp.min, highest = pair.clamp.max;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t product = (a[i] - zero_a) * factor;
    product = product > q.limit ? q.limit : product < -q.limit ? -q.limit : product;
    const std::int64_t scaled = static_cast<std::int64_t>(product << q.left) * q.mantissa;
    const std::int32_t place = ((static_cast<std::int32_t>(scaled >> 32) + q.rounding) >> q.right) + zero_point;
    y[i] = static_cast<std::uint8_t>(place < lowest ? lowest : place > highest ? highest : place);
  }
}
