// The loops of layers/kernels/packed_product.cpp (see core/kernels/per_instruction_set.h).

/// w = code - zero_point, which a signed byte holds; the i-th of n has the i-th zero point.
void signed_row(const std::uint8_t* codes, std::int64_t n, const std::int32_t* zero_points, std::int8_t* w) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) w[i] = static_cast<std::int8_t>(codes[i] - zero_points[i]);
}

/// `values` holds sums, 32-bit integers: (sum - less) * scale in their place.
void scale_row(float* values, std::int64_t n, const std::int32_t* less, const float* scales) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = static_cast<float>(std::bit_cast<std::int32_t>(values[i]) - less[i]) * scales[i];
}
