// The loops of integer/pointwise.cpp (see core/per_instruction_set.h).

/// Sums of two products of 9 and 31 bits, on 32 bits: mantissas are cut into their upper 15 and lower 16 bits, and with
/// a shift of at least 17 the lower sum and the rounding meet above bit 16.
void add_scaled(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, const PairOfInputs& pair,
                const SplitAdd& s, std::uint8_t* y) {
  const std::int32_t upper_a = s.upper[0], upper_b = s.upper[1], lower_a = s.lower[0], lower_b = s.lower[1];
  const std::int32_t zero_a = pair.zero_points[0], zero_b = pair.zero_points[1], zero_point = pair.zero_point;
  const std::int32_t rounding = s.rounding, right = s.right;
  const std::int32_t lowest = pair.clamp.min, highest = pair.clamp.max;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t p = a[i] - zero_a, q = b[i] - zero_b;
    const std::int32_t lower = p * lower_a + q * lower_b;
    const std::int32_t upper = p * upper_a + q * upper_b + (lower >> 16);
    const std::int32_t place = ((upper + rounding) >> right) + zero_point;
    y[i] = static_cast<std::uint8_t>(place < lowest ? lowest : place > highest ? highest : place);
  }
}

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
