// A pass that only reads, for core/kernels/per_instruction_set.h: the limit of an observer.

std::uint32_t sum_of_bits(const std::uint32_t* x, std::int64_t n) {
  std::uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
