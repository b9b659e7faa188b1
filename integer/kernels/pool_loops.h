// The loops of integer/kernels/pools.cpp (see core/kernels/per_instruction_set.h), over the channels of the pixels in a
// window.

void take_larger(const std::uint8_t* x, std::int64_t channels, std::uint8_t* y) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = x[c] > y[c] ? x[c] : y[c];
}

void add_pixel(const std::uint8_t* x, std::int64_t channels, std::int32_t* sums) {
  for (std::int64_t c = 0; c < channels; ++c) sums[c] += x[c];
}

void requantize_sums(const std::int32_t* sums, std::int64_t channels, const RequantizationFactors& q,
                     std::int32_t zero_point, const Clamp& clamp, std::uint8_t* y) {
  for (std::int64_t c = 0; c < channels; ++c) {
    std::int32_t sum = sums[c];
    sum = sum > q.limit ? q.limit : sum < -q.limit ? -q.limit : sum;
    const std::int64_t product = static_cast<std::int64_t>(sum << q.left) * q.mantissa;
    const std::int32_t place = ((static_cast<std::int32_t>(product >> 32) + q.rounding) >> q.right) + zero_point;
    y[c] = static_cast<std::uint8_t>(place < clamp.min ? clamp.min : place > clamp.max ? clamp.max : place);
  }
}
