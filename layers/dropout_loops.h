// The loop of layers/dropout.cpp (see core/per_instruction_set.h).

/// Elements begin..end; y may be x. The words are those of layers/reference/dropout.h.
void drop(const Drop& drop, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  const auto low = static_cast<std::uint32_t>(drop.key);
  const auto high = static_cast<std::uint32_t>(drop.key >> 32);
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    std::uint32_t word = static_cast<std::uint32_t>(i) ^ low;
    word = (word ^ (word >> 16)) * 0x85ebca6b;
    word = (word ^ (word >> 13)) * 0xc2b2ae35;
    word = word ^ (word >> 16) ^ high;
    word = (word ^ (word >> 16)) * 0x85ebca6b;
    word = (word ^ (word >> 13)) * 0xc2b2ae35;
    word ^= word >> 16;
    y[i] = x[i] * (word < drop.threshold ? 0.0f : drop.scale);
  }
}
