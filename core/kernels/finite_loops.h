// The loop of core/kernels/finite.cpp (see core/kernels/per_instruction_set.h).

/// Whether one of n float32, given as their bits, has an exponent of ones only.
bool has_special(const std::uint32_t* bits, std::int64_t n) {
  std::uint32_t special = 0;
  for (std::int64_t i = 0; i < n; ++i) special |= (bits[i] & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  return special != 0;
}
