// The loops of FakeQuant that sum up over a tensor, for core/kernels/per_instruction_set.h, after
// quantize/kernels/fake_quant_loops.h. Every place of a row has accumulators of its own, so that no sum depends on the
// width of a vector register.

template <bool kSums, bool kInside, bool kDx, bool kPull>
[[gnu::always_inline]] inline void gradient_loop(const float* x, const float* dy, float* dx, std::int64_t n,
                                                 std::int64_t width, const float* scales, const float* offsets,
                                                 const float* maxima, double* below, double* above, double* inside,
                                                 float pull) {
  for (std::int64_t row = 0; row < n; row += width) {
    const std::int64_t count = std::min(width, n - row);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float min = offsets[i] * scales[i], max = maxima[i];
      const float value = x[row + i];
      const float gradient = dy[row + i];
      const float counted = min == max ? 0.0f : gradient;
      if (kSums) below[i] += value < min ? counted : 0.0f;
      if (kSums) above[i] += value > max ? counted : 0.0f;
      if (kInside) {
        const float rounding = nearest(value, scales[i], offsets[i], min, max) - value;
        inside[i] += ((value >= min) & (value <= max)) ? counted * rounding : 0.0f;
      }
      float pulled = gradient;
      if (kPull) {
        const float beside = value - nearest(value, scales[i], offsets[i], min, max);
        pulled += ((value >= min) & (value <= max) & (min != max)) ? pull * beside : 0.0f;
      }
      if (kDx) dx[row + i] = passes(value, min, max) ? pulled : 0.0f;
    }
  }
}

void gradient_rows(const float* x, const float* dy, float* dx, std::int64_t n, const ChannelGrids& grids, double* below,
                   double* above, double* inside, float pull) {
  const auto run_as = [&]<bool kSums, bool kInside, bool kDx, bool kPull>() {
    gradient_loop<kSums, kInside, kDx, kPull>(x, dy, dx, n, grids.width, grids.scale, grids.offset, grids.nudged_max,
                                              below, above, inside, pull);
  };
  const auto run = [&]<bool kSums, bool kInside, bool kDx>() {
    if (kDx && pull != 0)
      run_as.template operator()<kSums, kInside, kDx, kDx>();
    else
      run_as.template operator()<kSums, kInside, kDx, false>();
  };
  if (inside)
    dx ? run.template operator()<true, true, true>() : run.template operator()<true, true, false>();
  else if (below)
    dx ? run.template operator()<true, false, true>() : run.template operator()<true, false, false>();
  else
    run.template operator()<false, false, true>();
}
