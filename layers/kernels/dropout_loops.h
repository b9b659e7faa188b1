// The loop of layers/dropout.cpp (see core/kernels/per_instruction_set.h).

/// `count` elements from number `first` on; y may be x. The words are those of layers/reference/random_word.h.
void drop(const Drop& drop, const float* x, float* y, std::uint32_t first, std::uint32_t count) {
  // A copy of its own, which no y can overlap.
  const Drop d = drop;
#pragma omp simd
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t word = (first + i) ^ d.low;
    word = (word ^ (word >> 16)) * 0x85ebca6b;
    word = (word ^ (word >> 13)) * 0xc2b2ae35;
    word = word ^ (word >> 16) ^ d.high;
    word = (word ^ (word >> 16)) * 0x85ebca6b;
    word = (word ^ (word >> 13)) * 0xc2b2ae35;
    word ^= word >> 16;
    const float factor = word < d.threshold ? 0.0f : d.scale;
    y[i] = x[i] * factor;
  }
}
