// The loops over the elements of FakeQuant, for core/per_instruction_set.h.
//
// Per channel, they walk the arrays of ChannelGrids in stretches of kStretch elements: after each, the channel moves on
// by kStretch modulo the number of channels.

/// fake_quantize of affine.h, with ChannelGrids' offset in place of quant_min and zero_point.
[[gnu::always_inline]] inline float on_grid(float x, float scale, float offset, float min, float max) {
  const float raised = x < min ? min : x;
  const float clamped = raised > max ? max : raised;
  return (floor_positive((clamped - min) / scale + 0.5f) + offset) * scale;
}

/// gradient_passes of affine.h.
[[gnu::always_inline]] inline bool passes(float x, float min, float max) {
  return ((x >= min) & (x <= max)) | (min == max);
}

/// One grid for everything.
void forward_one(const float* x, float* y, std::int64_t n, const ChannelGrids& grids) {
  const float scale = grids.scale[0], offset = grids.offset[0], max = grids.nudged_max[0];
  const float min = offset * scale;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    y[i] = on_grid(value, scale, offset, min, max);
  }
}

/// kCount elements from a stretch of grids.
template <int kCount>
[[gnu::always_inline]] inline void forward_stretch(const float* x, float* y, const float* scale, const float* offset,
                                                   const float* max) {
#pragma omp simd
  for (int i = 0; i < kCount; ++i) {
    const float value = x[i];
    y[i] = on_grid(value, scale[i], offset[i], offset[i] * scale[i], max[i]);
  }
}

/// Element 0 belongs to `channel`.
void forward_row(const float* x, float* y, std::int64_t n, const ChannelGrids& grids, std::int64_t channel) {
  constexpr int kStretch = ChannelGrids::kStretch;
  const std::int64_t step = kStretch % grids.channels;
  std::int64_t i = 0;
  for (; i + kStretch <= n; i += kStretch) {
    forward_stretch<kStretch>(x + i, y + i, grids.scale + channel, grids.offset + channel, grids.nudged_max + channel);
    channel += step;
    if (channel >= grids.channels) channel -= grids.channels;
  }
  const float* scale = grids.scale + channel;
  const float* offset = grids.offset + channel;
  const float* max = grids.nudged_max + channel;
  x += i;
  y += i;
#pragma omp simd
  for (std::int64_t k = 0; k < n - i; ++k) {
    const float value = x[k];
    y[k] = on_grid(value, scale[k], offset[k], offset[k] * scale[k], max[k]);
  }
}
