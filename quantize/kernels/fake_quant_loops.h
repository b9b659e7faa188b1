// The loops of FakeQuant over the elements of a tensor, for core/kernels/per_instruction_set.h. Their contracts are
// those of FakeQuantLoops (quantize/kernels/fake_quant_kernels.h).

/// Elements of a tensor that is read from the cache. Beyond, one row at a time is faster than several: the processor
/// fetches ahead along one stream.
constexpr std::int64_t kInCache = 32768;

/// floor of a number that is not negative; NaN for NaN. From AVX on there is an instruction for it.
[[gnu::always_inline]] inline float whole_part(float v) {
#if MINIQAT_VECTOR_BYTES > 16
  return __builtin_floorf(v);
#else
  return floor_positive(v);
#endif
}

// A grid is spelled out in its numbers, those of ChannelGrids: of a struct GCC keeps copies in memory, and then doesn't
// vectorise the loop.

/// fake_quantize of affine.h with quant_min 0 and zero_point -offset.
[[gnu::always_inline]] inline float nearest(float x, float scale, float offset, float min, float max) {
  const float raised = x < min ? min : x;
  const float clamped = raised > max ? max : raised;
  return (whole_part((clamped - min) / scale + 0.5f) + offset) * scale;
}

/// gradient_passes of affine.h.
[[gnu::always_inline]] inline bool passes(float x, float min, float max) {
  return ((x >= min) & (x <= max)) | (min == max);
}

void forward_one(const float* x, float* y, std::int64_t n, const ChannelGrids& grids) {
  const float scale = grids.scale[0], offset = grids.offset[0], max = grids.nudged_max[0];
  const float min = offset * scale;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    y[i] = nearest(value, scale, offset, min, max);
  }
}

/// kRows rows at once: reading their grids then costs little beside reading the elements.
template <int kRows>
[[gnu::always_inline]] inline void forward_group(const float* x, float* y, std::int64_t width, std::int64_t count,
                                                 const float* scales, const float* offsets, const float* maxima) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float scale = scales[i], offset = offsets[i], max = maxima[i];
    const float min = offset * scale;
    for (int row = 0; row < kRows; ++row) {
      const float value = x[row * width + i];
      y[row * width + i] = nearest(value, scale, offset, min, max);
    }
  }
}

void forward_rows(const float* x, float* y, std::int64_t n, const ChannelGrids& grids) {
  constexpr int kRows = 4;
  const std::int64_t width = grids.width;
  std::int64_t i = 0;
  if (n <= kInCache) {
    for (; i + kRows * width <= n; i += kRows * width)
      forward_group<kRows>(x + i, y + i, width, width, grids.scale, grids.offset, grids.nudged_max);
  }
  for (; i < n; i += width)
    forward_group<1>(x + i, y + i, width, std::min(width, n - i), grids.scale, grids.offset, grids.nudged_max);
}

/// Where a block finds the grids of its elements: the same for all, or those at a place in the row.
struct OneGrid {
  float one_scale, one_offset, one_max;

  [[gnu::always_inline]] float scale(int) const { return one_scale; }
  [[gnu::always_inline]] float offset(int) const { return one_offset; }
  [[gnu::always_inline]] float max(int) const { return one_max; }
  [[gnu::always_inline]] void advance(int) {}
};
struct RowOfGrids {
  const float *scales, *offsets, *maxima;
  std::int64_t width, place;

  [[gnu::always_inline]] float scale(int i) const { return scales[place + i]; }
  [[gnu::always_inline]] float offset(int i) const { return offsets[place + i]; }
  [[gnu::always_inline]] float max(int i) const { return maxima[place + i]; }
  [[gnu::always_inline]] void advance(int count) {
    place += count;
    if (place >= width) place -= width;
  }
};

/// A whole block of a mask.
template <class Grids>
[[gnu::always_inline]] inline void forward_block(const float* x, float* y, std::uint32_t* mask, Grids& grids) {
  std::uint32_t words[kMaskLanes] = {};
  for (int bit = 0; bit < 32; ++bit) {
#pragma omp simd
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      const float scale = grids.scale(lane), offset = grids.offset(lane), max = grids.max(lane);
      const float min = offset * scale;
      const float value = x[bit * kMaskLanes + lane];
      words[lane] |= (passes(value, min, max) ? 1u : 0u) << bit;
      y[bit * kMaskLanes + lane] = nearest(value, scale, offset, min, max);
    }
    grids.advance(kMaskLanes);
  }
  for (int lane = 0; lane < kMaskLanes; ++lane) mask[lane] = words[lane];
}

template <class Grids>
[[gnu::always_inline]] inline void forward_blocks(const float* x, float* y, std::int64_t n, std::uint32_t* mask,
                                                  Grids grids) {
  for (; n >= kMaskBlock; n -= kMaskBlock, x += kMaskBlock, y += kMaskBlock, mask += kMaskLanes)
    forward_block(x, y, mask, grids);
  if (n == 0) return;
  float rest[kMaskBlock] = {};
  for (std::int64_t i = 0; i < n; ++i) rest[i] = x[i];
  forward_block(rest, rest, mask, grids);
  for (std::int64_t i = 0; i < n; ++i) y[i] = rest[i];
}

void forward_mask(const float* x, float* y, std::int64_t n, std::uint32_t* mask, const ChannelGrids& grids,
                  std::int64_t place) {
  if (grids.channels == 1)
    forward_blocks(x, y, n, mask, OneGrid{grids.scale[0], grids.offset[0], grids.nudged_max[0]});
  else
    forward_blocks(x, y, n, mask, RowOfGrids{grids.scale, grids.offset, grids.nudged_max, grids.width, place});
}

[[gnu::always_inline]] inline void masked_block(const float* dy, float* dx, const std::uint32_t* mask) {
  for (int bit = 0; bit < 32; ++bit) {
#pragma omp simd
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      const float value = dy[bit * kMaskLanes + lane];
      dx[bit * kMaskLanes + lane] = (mask[lane] >> bit) & 1 ? value : 0.0f;
    }
  }
}

void masked(const float* dy, float* dx, std::int64_t n, const std::uint32_t* mask) {
  for (; n >= kMaskBlock; n -= kMaskBlock, dy += kMaskBlock, dx += kMaskBlock, mask += kMaskLanes)
    masked_block(dy, dx, mask);
  if (n == 0) return;
  float rest[kMaskBlock] = {};
  for (std::int64_t i = 0; i < n; ++i) rest[i] = dy[i];
  masked_block(rest, rest, mask);
  for (std::int64_t i = 0; i < n; ++i) dx[i] = rest[i];
}

// Sums over a tensor: every place of a row has accumulators of its own, so that no sum depends on the width of a vector
// register.

/// `count` elements whose places in the row begin at that of the grids.
template <bool kSums, bool kInside, bool kDx, bool kPull>
[[gnu::always_inline]] inline void gradient_piece(const float* x, const float* dy, float* dx, std::int64_t count,
                                                  const float* scales, const float* offsets, const float* maxima,
                                                  double* below, double* above, double* inside, float pull) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float min = offsets[i] * scales[i], max = maxima[i];
    const float value = x[i];
    const float gradient = dy[i];
    const float counted = kept_if(min != max, gradient);
    if (kSums) below[i] += kept_if(value < min, counted);
    if (kSums) above[i] += kept_if(value > max, counted);
    if (kInside) {
      const float rounding = nearest(value, scales[i], offsets[i], min, max) - value;
      inside[i] += kept_if((value >= min) & (value <= max), counted * rounding);
    }
    float pulled = gradient;
    if (kPull) {
      const float beside = value - nearest(value, scales[i], offsets[i], min, max);
      pulled += kept_if((value >= min) & (value <= max) & (min != max), pull * beside);
    }
    if (kDx) dx[i] = kept_if(passes(value, min, max), pulled);
  }
}

/// Whether one of kMaskLanes elements lies below or above its grid.
[[gnu::always_inline]] inline bool is_any_outside(const float* x, const float* scales, const float* offsets,
                                                  const float* maxima) {
  int outside = 0;
#pragma omp simd reduction(| : outside)
  for (int i = 0; i < kMaskLanes; ++i) outside |= (x[i] < offsets[i] * scales[i]) | (x[i] > maxima[i]);
  return outside != 0;
}

/// Most elements lie inside: where a few neighbours all do, the sums of the others are left alone, which adding zeros
/// would not change either.
template <bool kSums, bool kInside, bool kDx, bool kPull>
[[gnu::always_inline]] inline void gradient_loop(const float* x, const float* dy, float* dx, std::int64_t n,
                                                 std::int64_t width, const float* scales, const float* offsets,
                                                 const float* maxima, double* below, double* above, double* inside,
                                                 float pull) {
  const auto piece = [&]<bool kOutside>(std::int64_t row, std::int64_t i, std::int64_t count) {
    gradient_piece<kSums && kOutside, kInside, kDx, kPull>(
        x + row + i, dy + row + i, kDx ? dx + row + i : nullptr, count, scales + i, offsets + i, maxima + i,
        kSums ? below + i : nullptr, kSums ? above + i : nullptr, kInside ? inside + i : nullptr, pull);
  };
  for (std::int64_t row = 0; row < n; row += width) {
    const std::int64_t count = std::min(width, n - row);
    std::int64_t i = 0;
    for (; i + kMaskLanes <= count; i += kMaskLanes) {
      if (kSums && is_any_outside(x + row + i, scales + i, offsets + i, maxima + i))
        piece.template operator()<true>(row, i, kMaskLanes);
      else
        piece.template operator()<false>(row, i, kMaskLanes);
    }
    piece.template operator()<true>(row, i, count - i);
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
