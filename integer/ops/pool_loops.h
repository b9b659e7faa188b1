// The loops of integer/ops/pool.cpp (see core/kernels/per_instruction_set.h), over the channels of the pixels in a
// window.

void take_larger(const std::uint8_t* x, std::int64_t channels, std::uint8_t* y) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = x[c] > y[c] ? x[c] : y[c];
}

void add_pixel(const std::uint8_t* x, std::int64_t channels, std::int32_t* sums) {
  for (std::int64_t c = 0; c < channels; ++c) sums[c] += x[c];
}

void requantize_sums(const std::int32_t* sums, std::int64_t channels, const RequantizationFactors& factors,
                     std::int32_t zero_point, const Clamp& bounds, std::uint8_t* y) {
  const RequantizationFactors q = factors;
  const Clamp clamp = bounds;
  for (std::int64_t c = 0; c < channels; ++c) y[c] = requantized(sums[c], q, zero_point, clamp);
}
