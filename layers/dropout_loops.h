// The loop of layers/dropout.cpp (see core/per_instruction_set.h).

/// Philox4x32-10, as core/random.h has it, of 16 counters at a time: words[4 * j + k] is word k of counter `first` + j.
void random_words(std::uint64_t key, std::uint64_t first, std::uint32_t* words) {
  constexpr int kLanes = kWordsAtOnce / 4;
  std::uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    c0[i] = static_cast<std::uint32_t>(first + i);
    c1[i] = static_cast<std::uint32_t>((first + i) >> 32);
    c2[i] = c3[i] = 0;
  }
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t product0 = std::uint64_t{0xd2511f53} * c0[i];
      const std::uint64_t product1 = std::uint64_t{0xcd9e8d57} * c2[i];
      c0[i] = static_cast<std::uint32_t>(product1 >> 32) ^ c1[i] ^ key0;
      c1[i] = static_cast<std::uint32_t>(product1);
      c2[i] = static_cast<std::uint32_t>(product0 >> 32) ^ c3[i] ^ key1;
      c3[i] = static_cast<std::uint32_t>(product0);
    }
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  for (int i = 0; i < kLanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

/// Elements begin..end; begin is a multiple of kWordsAtOnce. y may be x.
void drop(const Drop& drop, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  std::uint32_t words[kWordsAtOnce];
  for (std::int64_t at = begin; at < end; at += kWordsAtOnce) {
    random_words(drop.key, static_cast<std::uint64_t>(at / 4), words);
    const std::int64_t count = end - at < kWordsAtOnce ? end - at : kWordsAtOnce;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[at + i] = x[at + i] * (words[i] < drop.threshold ? 0.0f : drop.scale);
  }
}
