// The loops of core/kernels/packed.cpp (see core/kernels/per_instruction_set.h).

/// The quotient is a whole number but for rounding. Adding 0.5 and cutting off rounds it; NaN must not be converted.
[[gnu::always_inline]] inline std::uint8_t code_of(float y, float inverse, float rounding) {
  const float code = y * inverse + rounding;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(code == code ? code : 0.0f));
}

bool pack_one(const float* y, std::int64_t n, float inverse, float rounding, std::uint8_t* codes) {
  std::uint32_t nan = 0;
#pragma omp simd reduction(| : nan)
  for (std::int64_t i = 0; i < n; ++i) {
    nan |= y[i] == y[i] ? 0u : 1u;
    codes[i] = code_of(y[i], inverse, rounding);
  }
  return nan != 0;
}

/// y[i] of n has the i-th of the numbers.
bool pack_row(const float* y, std::int64_t n, const float* inverse, const float* rounding, std::uint8_t* codes) {
  std::uint32_t nan = 0;
#pragma omp simd reduction(| : nan)
  for (std::int64_t i = 0; i < n; ++i) {
    nan |= y[i] == y[i] ? 0u : 1u;
    codes[i] = code_of(y[i], inverse[i], rounding[i]);
  }
  return nan != 0;
}

void unpack_one(const std::uint8_t* codes, std::int64_t n, float scale, float zero_point, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(codes[i]) - zero_point) * scale;
}

void unpack_row(const std::uint8_t* codes, std::int64_t n, const float* scale, const float* zero_point, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(codes[i]) - zero_point[i]) * scale[i];
}
