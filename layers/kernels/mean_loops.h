// The loop of layers/mean.cpp (see core/kernels/per_instruction_set.h).

using Floats __attribute__((vector_size(MINIQAT_VECTOR_BYTES))) = float;

/// sums[c] = sum over `rows` (at most kShort) rows, `step` apart, of x[row][c].
void add_rows(const float* x, std::int64_t rows, std::int64_t step, std::int64_t channels, float* sums) {
  constexpr std::int64_t kLanes = MINIQAT_VECTOR_BYTES / sizeof(float);
  std::int64_t c = 0;
  // As many sums as hide the latency of an addition.
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) {
    Floats total[4] = {};
    for (std::int64_t row = 0; row < rows; ++row)
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        Floats value;
        __builtin_memcpy(&value, x + row * step + c + v * kLanes, sizeof value);
        total[v] += value;
      }
    __builtin_memcpy(sums + c, total, sizeof total);
  }
  for (; c < channels; ++c) {
    float total = 0;
    for (std::int64_t row = 0; row < rows; ++row) total += x[row * step + c];
    sums[c] = total;
  }
}

/// y[c] = scale * sum over rows of x[row][c] for at most kBlock channels: in float32 over short runs of rows, in
/// float64 over these.
void average(const float* x, std::int64_t rows, std::int64_t step, std::int64_t channels, double scale, float* y) {
  constexpr std::int64_t kShort = 16;
  double totals[kBlock] = {};
  float sums[kBlock];
  for (std::int64_t row = 0; row < rows; row += kShort) {
    add_rows(x + row * step, rows - row < kShort ? rows - row : kShort, step, channels, sums);
    for (std::int64_t c = 0; c < channels; ++c) totals[c] += static_cast<double>(sums[c]);
  }
  for (std::int64_t c = 0; c < channels; ++c) y[c] = static_cast<float>(totals[c] * scale);
}
