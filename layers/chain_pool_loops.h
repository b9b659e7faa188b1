// The loops of chain_pool.cpp, compiled per instruction set (see core/per_instruction_set.h). They take 16 channels at
// a time. Where a pixel has fewer left, what the other lanes write belongs to the pixels after it and is overwritten
// when their turn comes.

template <bool kWinners>
static void pool_pixel(const float* taps, const float* values, std::int64_t window_h, std::int64_t window_w,
                       std::int64_t row, std::int64_t pixel, float pass_low, float pass_high, float* y,
                       std::uint8_t* winners) {
  float best[kMaskLanes], value[kMaskLanes];
  std::int32_t winner[kMaskLanes] = {};
  for (int lane = 0; lane < kMaskLanes; ++lane) best[lane] = taps[lane];
  for (int lane = 0; lane < kMaskLanes; ++lane) value[lane] = values[lane];
  for (std::int64_t ky = 0; ky < window_h; ++ky)
    for (std::int64_t kx = ky == 0 ? 1 : 0; kx < window_w; ++kx) {
      const float* tap = taps + ky * row + kx * pixel;
      const float* unrounded = values + ky * row + kx * pixel;
      const std::int32_t number = static_cast<std::int32_t>(ky * window_w + kx);
#pragma omp simd
      for (int lane = 0; lane < kMaskLanes; ++lane) {
        const float candidate = tap[lane], before = unrounded[lane];
        // As reference::exceeds: a tie leaves the first, and the first NaN stays.
        const bool larger = (candidate > best[lane]) | ((candidate != candidate) & (best[lane] == best[lane]));
        best[lane] = larger ? candidate : best[lane];
        if constexpr (kWinners) {
          value[lane] = larger ? before : value[lane];
          winner[lane] = larger ? number : winner[lane];
        }
      }
    }
  for (int lane = 0; lane < kMaskLanes; ++lane) y[lane] = best[lane];
  if constexpr (kWinners) {
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      const bool passes = (value[lane] >= pass_low) & (value[lane] <= pass_high);
      winners[lane] = static_cast<std::uint8_t>(passes ? winner[lane] : std::int32_t{kBlockedTap});
    }
  }
}

template <bool kWinners>
static void pool_row(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                     float* y, std::uint8_t* winners) {
  const std::int64_t c = pool.channels, row = pool.w * c;
  const std::int64_t window_h = pool.window_h, window_w = pool.window_w;
  for (std::int64_t ox = 0; ox < pool.output_w(); ++ox)
    for (std::int64_t from = 0; from < c; from += kMaskLanes) {
      const std::int64_t at = ox * window_w * c + from, to = ox * c + from;
      // Written out, the usual window's loops unroll.
      if (window_h == 2 && window_w == 2)
        pool_pixel<kWinners>(taps + at, values + at, 2, 2, row, c, pass_low, pass_high, y + to,
                             kWinners ? winners + to : nullptr);
      else
        pool_pixel<kWinners>(taps + at, values + at, window_h, window_w, row, c, pass_low, pass_high, y + to,
                             kWinners ? winners + to : nullptr);
    }
}

static void pool_windows(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                         float* y, std::uint8_t* winners) {
  winners != nullptr ? pool_row<true>(pool, taps, values, pass_low, pass_high, y, winners)
                     : pool_row<false>(pool, taps, values, pass_low, pass_high, y, winners);
}

static void unpool_windows(const ChainPool& pool, const float* d_y, const std::uint8_t* winners, float* d_x) {
  const std::int64_t c = pool.channels, row = pool.w * c, pooled = pool.output_w();
  for (std::int64_t ky = 0; ky < pool.window_h; ++ky) {
    for (std::int64_t ox = 0; ox < pooled; ++ox)
      for (std::int64_t kx = 0; kx < pool.window_w; ++kx) {
        const std::int32_t number = static_cast<std::int32_t>(ky * pool.window_w + kx);
        float* to = d_x + ky * row + (ox * pool.window_w + kx) * c;
        for (std::int64_t from = 0; from < c; from += kMaskLanes) {
#pragma omp simd
          for (int lane = 0; lane < kMaskLanes; ++lane) {
            const float gradient = d_y[ox * c + from + lane];
            to[from + lane] = std::int32_t{winners[ox * c + from + lane]} == number ? gradient : 0.0f;
          }
        }
      }
    for (std::int64_t i = pooled * pool.window_w * c; i < row; ++i) d_x[ky * row + i] = 0;
  }
}

static void add_where_passing(const float* d_y, const std::uint8_t* winners, std::int64_t width, std::int64_t first,
                              std::int64_t last, float* sums) {
  for (std::int64_t row = first; row < last; row += width) {
    const std::int64_t count = last - row < width ? last - row : width;
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) {
      const float gradient = d_y[row + j];
      sums[j] += winners[row + j] != kBlockedTap ? gradient : 0.0f;
    }
  }
}
