// What this machine does at most, for core/kernels/per_instruction_set.h. Arithmetic in registers alone: independent
// chains, enough of them to hide how long one operation takes.

using PeakVector __attribute__((vector_size(MINIQAT_VECTOR_BYTES))) = float;

constexpr int kPeakChains = 12;

/// Per step and chain: a product and a sum.
float products_and_sums(std::int64_t steps) {
  PeakVector chains[kPeakChains];
  for (int k = 0; k < kPeakChains; ++k) chains[k] = PeakVector{} + static_cast<float>(k);
  const PeakVector factor = PeakVector{} + 0.5f, term = PeakVector{} + 1.0f;
  for (std::int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kPeakChains; ++k) chains[k] = chains[k] * factor + term;
  }
  PeakVector sum = {};
  for (int k = 0; k < kPeakChains; ++k) sum += chains[k];
  return sum[0];
}

/// Per step and chain: a division.
float quotients(std::int64_t steps) {
  PeakVector chains[kPeakChains];
  for (int k = 0; k < kPeakChains; ++k) chains[k] = PeakVector{} + static_cast<float>(k + 2);
  const PeakVector dividend = PeakVector{} + 3.0f;
  for (std::int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kPeakChains; ++k) chains[k] = dividend / chains[k];
  }
  PeakVector sum = {};
  for (int k = 0; k < kPeakChains; ++k) sum += chains[k];
  return sum[0];
}

int peak_lanes() { return kPeakChains * MINIQAT_VECTOR_BYTES / static_cast<int>(sizeof(float)); }

/// A pass that only reads: the limit of an observer.
std::uint32_t sum_of_bits(const std::uint32_t* x, std::int64_t n) {
  std::uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
