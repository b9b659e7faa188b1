// Minima and maxima by column for other files of loops (see core/kernels/per_instruction_set.h), which include this
// one.

/// Lowers low[i] and raises high[i] to the first `count` elements of kRows rows, `width` apart, which meet in registers
/// before low and high are touched. NaNs are left aside; returns whether there was one.
template <int kRows>
[[gnu::always_inline]] inline std::uint32_t min_max_group(const float* x, std::int64_t width, std::int64_t count,
                                                          float* low, float* high) {
  std::uint32_t not_a_number = 0;
#pragma omp simd reduction(| : not_a_number)
  for (std::int64_t i = 0; i < count; ++i) {
    float least = low[i];
    float most = high[i];
    for (int row = 0; row < kRows; ++row) {
      const float value = x[row * width + i];
      // False for a NaN: that leaves it aside.
      least = value < least ? value : least;
      most = value > most ? value : most;
      not_a_number |= value != value ? 1u : 0u;
    }
    low[i] = least;
    high[i] = most;
  }
  return not_a_number;
}
