// The loops of layers/kernels/byte_gradient.cpp (see core/kernels/per_instruction_set.h).

/// largest[i] = the largest |d_y * scale| of the elements at place i of `width`, and what it was before, as bits: their
/// order is that of positive numbers, and infinity and NaN come last.
void largest_by_place(const float* d_y, std::int64_t n, const float* scales, std::int64_t width,
                      std::int32_t* largest) {
  for (std::int64_t first = 0; first < n; first += width) {
    const std::int64_t count = n - first < width ? n - first : width;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t bits = __builtin_bit_cast(std::int32_t, d_y[first + i] * scales[i]) & 0x7fffffff;
      largest[i] = bits > largest[i] ? bits : largest[i];
    }
  }
}

/// n elements from number `first` on, whose scales repeat after `width`. The words are those of
/// layers/reference/random_word.h, the bytes those of layers/reference/byte_gradient.h.
inline void round_to_bytes_row(const float* d_y, std::int64_t n, const float* scales, const ByteRounding& r,
                               std::uint32_t first, std::int8_t* for_input, std::int8_t* for_filter) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t word = (first + static_cast<std::uint32_t>(i)) ^ r.low;
    word = (word ^ (word >> 16)) * 0x85ebca6b;
    word = (word ^ (word >> 13)) * 0xc2b2ae35;
    word = word ^ (word >> 16) ^ r.high;
    word = (word ^ (word >> 16)) * 0x85ebca6b;
    word = (word ^ (word >> 13)) * 0xc2b2ae35;
    word ^= word >> 16;
    // 128 + u, whose last bit is worth 2^-16.
    constexpr std::uint32_t kMiddle = 0x43000000;
    const float g = d_y[i] * scales[i];
    float a = g * r.for_input + __builtin_bit_cast(float, kMiddle | (word & 0xffff));
    float b = g * r.for_filter + __builtin_bit_cast(float, kMiddle | word >> 16);
    a = a < 1 ? 1 : a;
    b = b < 1 ? 1 : b;
    a = a > 255 ? 255 : a;
    b = b > 255 ? 255 : b;
    for_input[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(a) - 128);
    for_filter[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(b) - 128);
  }
}

void round_to_bytes(const float* d_y, std::int64_t n, const float* scales, std::int64_t width,
                    const ByteRounding& rounding, std::uint32_t first, std::int8_t* for_input,
                    std::int8_t* for_filter) {
  // A copy of its own, which no byte can overlap.
  const ByteRounding own = rounding;
  for (std::int64_t i = 0; i < n; i += width)
    round_to_bytes_row(d_y + i, n - i < width ? n - i : width, scales, own, first + static_cast<std::uint32_t>(i),
                       for_input + i, for_filter + i);
}

/// sums[row] = sum of bytes * middle over its columns.
void weigh_rows(const std::int8_t* bytes, std::int64_t rows, std::int64_t columns, const std::int32_t* middle,
                std::int32_t* sums) {
  for (std::int64_t row = 0; row < rows; ++row, bytes += columns) {
    std::int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < columns; ++c) sum += bytes[c] * middle[c];
    sums[row] = sum;
  }
}

/// to[i * stride] += from[i].
void spread_row(const std::int32_t* from, std::int64_t n, std::int64_t stride, std::int32_t* to) {
  if (stride == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
  }
}

/// `values` holds sums, 32-bit integers: sum * step in their place.
void scale_sums(float* values, std::int64_t n, float step) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = static_cast<float>(__builtin_bit_cast(std::int32_t, values[i])) * step;
}

/// With a term for each row: (sum + the row's) * step.
void add_and_scale_sums(float* values, std::int64_t rows, std::int64_t columns, const std::int32_t* of_rows,
                        float step) {
  for (std::int64_t row = 0; row < rows; ++row, values += columns) {
    const std::int32_t more = of_rows[row];
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c)
      values[c] = static_cast<float>(__builtin_bit_cast(std::int32_t, values[c]) + more) * step;
  }
}
