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

/// With a term for each row: (sum + middle * sum of x - less) * scale.
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

/// sums[i] = the sum of the i-th eight bytes, each with `flipped` bits: of pairs, of these pairs, of these.
inline void sum_eights(const std::uint8_t* bytes, std::int64_t n, std::uint64_t flipped, std::uint32_t* sums) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint64_t eight;
    __builtin_memcpy(&eight, bytes + 8 * i, 8);
    eight ^= flipped;
    eight = (eight & 0x00ff00ff00ff00ff) + (eight >> 8 & 0x00ff00ff00ff00ff);
    eight = (eight & 0x0000ffff0000ffff) + (eight >> 16 & 0x0000ffff0000ffff);
    sums[i] = static_cast<std::uint32_t>(eight + (eight >> 32));
  }
}

template <int kGroups>
inline void add_groups(const std::uint32_t* eights, std::int64_t n, std::int32_t* sums) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t sum = 0;
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) sum += eights[i * kGroups + g];
    sums[i] = static_cast<std::int32_t>(sum);
  }
}

/// There are a multiple of eight channels.
inline void sum_pixels_by_eights(const std::uint8_t* x, std::int64_t pixels, std::int64_t channels,
                                 std::uint64_t flipped, std::int32_t* sums) {
  constexpr std::int64_t kSums = 512;
  std::uint32_t eights[kSums];
  const std::int64_t groups = channels / 8, together = kSums / groups;
  for (std::int64_t first = 0; first < pixels; first += together, sums += together) {
    const std::int64_t count = pixels - first < together ? pixels - first : together;
    sum_eights(x + first * channels, count * groups, flipped, eights);
    if (groups == 1) {
      add_groups<1>(eights, count, sums);
    } else if (groups == 2) {
      add_groups<2>(eights, count, sums);
    } else if (groups == 4) {
      add_groups<4>(eights, count, sums);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        std::uint32_t sum = 0;
        for (std::int64_t g = 0; g < groups; ++g) sum += eights[i * groups + g];
        sums[i] = static_cast<std::int32_t>(sum);
      }
    }
  }
}

/// The sum of each pixel's channels, each with `flipped` bits. Few are added up in all pixels at once.
void sum_pixels(const std::uint8_t* x, std::int64_t pixels, std::int64_t channels, std::uint8_t flipped,
                std::int32_t* sums) {
  constexpr std::int64_t kFew = 16, kMost = 4096;
  constexpr std::uint64_t kEight = 0x0101010101010101;
  if (channels % 8 == 0 && channels <= kMost) {
    sum_pixels_by_eights(x, pixels, channels, flipped * kEight, sums);
  } else if (channels < kFew) {
    for (std::int64_t i = 0; i < pixels; ++i) sums[i] = x[i * channels] ^ flipped;
    for (std::int64_t c = 1; c < channels; ++c) {
#pragma omp simd
      for (std::int64_t i = 0; i < pixels; ++i) sums[i] += x[i * channels + c] ^ flipped;
    }
  } else {
    for (std::int64_t i = 0; i < pixels; ++i, x += channels) {
      std::int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t c = 0; c < channels; ++c) sum += x[c] ^ flipped;
      sums[i] = sum;
    }
  }
}

/// (sum - less) * factor in place of sums.
void weigh_sums(std::int32_t* sums, std::int64_t n, std::int32_t less, std::int32_t factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) sums[i] = (sums[i] - less) * factor;
}
