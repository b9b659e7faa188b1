// The loops of layers/kernels/bfloat16_factors.cpp (see core/kernels/per_instruction_set.h).

/// Rounds like Bfloat16::rounded(), which must not be compiled for other CPUs than this one.
inline std::uint16_t rounded_bits(float number) {
  const auto bits = __builtin_bit_cast(std::uint32_t, number);
  const std::uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, quiet = bits >> 16 | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest);
}

void round_row(const float* numbers, std::int64_t n, Bfloat16* rounded) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) rounded[i].bits = rounded_bits(numbers[i]);
}

/// The i-th of n has the i-th scale.
void scale_and_round_row(const float* numbers, std::int64_t n, const float* scales, Bfloat16* rounded) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) rounded[i].bits = rounded_bits(numbers[i] * scales[i]);
}

/// The i-th of n by the i-th factor.
void multiply_row(float* numbers, std::int64_t n, const float* factors) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) numbers[i] *= factors[i];
}

/// code - zero, an integer of at most 8 bits; the i-th of n has the i-th zero.
void integers_row(const std::uint8_t* codes, std::int64_t n, const float* zeros, Bfloat16* integers) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    integers[i].bits =
        static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, static_cast<float>(codes[i]) - zeros[i]) >> 16);
}
