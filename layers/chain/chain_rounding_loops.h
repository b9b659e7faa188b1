// The loops of chain_rounding.cpp, compiled per instruction set (see core/kernels/per_instruction_set.h).

static void encode(const float* v, const float* y, std::int64_t n, float codes_a_unit, float lowest, float highest,
                   std::int16_t* codes) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = v[i];
    // Within +-30000 or a little more inside of the range; moved up, so that cutting off rounds.
    const float steps = (y[i] - value) * codes_a_unit + 65536.5f;
    const bool inside = (value >= lowest) & (value <= highest);
    const std::int32_t code = static_cast<std::int32_t>(inside ? steps : 65536.0f) - 65536;
    const std::int32_t low = value < lowest ? kBelowRange : code;
    codes[i] = static_cast<std::int16_t>(value > highest ? kAboveRange : low);
  }
}

/// Adds to kRoundingLanes sums of each kind.
static void add_up(const float* d_y, const std::int16_t* codes, std::int64_t n, float* below, float* above,
                   float* inside) {
  std::int64_t i = 0;
  for (; i + kRoundingLanes <= n; i += kRoundingLanes) {
#pragma omp simd
    for (int lane = 0; lane < kRoundingLanes; ++lane) {
      const float g = d_y[i + lane];
      const std::int32_t code = codes[i + lane];
      const bool is_below = code == kBelowRange, is_above = code == kAboveRange;
      below[lane] += is_below ? g : 0.0f;
      above[lane] += is_above ? g : 0.0f;
      inside[lane] += (is_below | is_above) ? 0.0f : g * static_cast<float>(code);
    }
  }
  for (int lane = 0; i < n; ++i, ++lane) {
    const std::int32_t code = codes[i];
    below[lane] += code == kBelowRange ? d_y[i] : 0.0f;
    above[lane] += code == kAboveRange ? d_y[i] : 0.0f;
    inside[lane] += code == kBelowRange || code == kAboveRange ? 0.0f : d_y[i] * static_cast<float>(code);
  }
}
