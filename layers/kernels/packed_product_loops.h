// The loops of layers/kernels/packed_product.cpp (see core/kernels/per_instruction_set.h).

/// w = code - zero, which a signed byte holds; the i-th of n has the i-th zero.
void signed_row(const std::uint8_t* codes, std::int64_t n, const std::int32_t* zeros, std::int8_t* w) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) w[i] = static_cast<std::int8_t>(codes[i] - zeros[i]);
}

/// `values` holds sums, 32-bit integers: (sum - less) * scale in their place.
void scale_row(float* values, std::int64_t n, const std::int32_t* less, const float* scales) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = static_cast<float>(std::bit_cast<std::int32_t>(values[i]) - less[i]) * scales[i];
}

/// The same row by row: (sum + middle * sum of x - less) * scale.
void add_and_scale_rows(float* values, std::int64_t rows, std::int64_t columns, const std::int32_t* sums_of_x,
                        const std::int32_t* middle, const std::int32_t* less, const float* scales) {
  for (std::int64_t row = 0; row < rows; ++row, values += columns) {
    const std::int32_t of_x = sums_of_x[row];
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c)
      values[c] = static_cast<float>(std::bit_cast<std::int32_t>(values[c]) + middle[c] * of_x - less[c]) * scales[c];
  }
}

/// to[i] += from[i * stride].
void add_row(const std::int32_t* from, std::int64_t stride, std::int64_t n, std::int32_t* to) {
  if (stride == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i * stride];
  }
}

/// The sum of each pixel's channels. Few are added up in all pixels at once.
void sum_pixels(const std::uint8_t* x, std::int64_t pixels, std::int64_t channels, std::int32_t* sums) {
  constexpr std::int64_t kFew = 16;
  if (channels < kFew) {
    for (std::int64_t i = 0; i < pixels; ++i) sums[i] = x[i * channels];
    for (std::int64_t c = 1; c < channels; ++c) {
#pragma omp simd
      for (std::int64_t i = 0; i < pixels; ++i) sums[i] += x[i * channels + c];
    }
    return;
  }
  for (std::int64_t i = 0; i < pixels; ++i, x += channels) {
    std::int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < channels; ++c) sum += x[c];
    sums[i] = sum;
  }
}
