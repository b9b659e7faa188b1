// A kernel of one's own in intrinsics: eight elements at once, the rest one by one. docs/own-kernel.md explains it.

#include "bench/kernels/fake_quant_kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <cmath>

namespace miniqat::bench {
namespace {

float one(float x, const fake_quant_grid& grid) {
  const float raised = x < grid.nudged_min ? grid.nudged_min : x;
  const float clamped = raised > grid.nudged_max ? grid.nudged_max : raised;
  return (grid.quant_min + std::floor((clamped - grid.nudged_min) / grid.scale + 0.5f) - grid.zero_point) * grid.scale;
}

/// The numbers of eight grids.
struct Eight {
  __m256 scale, offset, min, max;
};

/// min and max return their second operand when one is a NaN: so x stays a NaN. The integer less its zero point is
/// exact, also in this order.
[[gnu::target("avx2")]] inline __m256 eight_of(__m256 x, const Eight& grid) {
  const __m256 clamped = _mm256_min_ps(grid.max, _mm256_max_ps(grid.min, x));
  const __m256 steps = _mm256_div_ps(_mm256_sub_ps(clamped, grid.min), grid.scale);
  const __m256 whole = _mm256_floor_ps(_mm256_add_ps(steps, _mm256_set1_ps(0.5f)));
  return _mm256_mul_ps(_mm256_add_ps(whole, grid.offset), grid.scale);
}

[[gnu::target("avx2")]] void per_tensor(const float* x, float* y, std::int64_t n, const fake_quant_grid& grid) {
  const Eight all = {_mm256_set1_ps(grid.scale), _mm256_set1_ps(grid.quant_min - grid.zero_point),
                     _mm256_set1_ps(grid.nudged_min), _mm256_set1_ps(grid.nudged_max)};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, eight_of(_mm256_loadu_ps(x + i), all));
  for (; i < n; ++i) y[i] = one(x[i], grid);
}

/// Channels in blocks of eight: their numbers are turned from structs to vectors once, for all rows.
[[gnu::target("avx2")]] void few_rows(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids,
                                      std::int64_t channels) {
  const std::int64_t rows = n / channels;
  std::int64_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    float scale[8], offset[8], min[8], max[8];
    for (int k = 0; k < 8; ++k) {
      const fake_quant_grid& grid = grids[c + k];
      scale[k] = grid.scale, offset[k] = grid.quant_min - grid.zero_point;
      min[k] = grid.nudged_min, max[k] = grid.nudged_max;
    }
    const Eight block = {_mm256_loadu_ps(scale), _mm256_loadu_ps(offset), _mm256_loadu_ps(min), _mm256_loadu_ps(max)};
    for (std::int64_t i = c; i < rows * channels; i += channels)
      _mm256_storeu_ps(y + i, eight_of(_mm256_loadu_ps(x + i), block));
  }
  for (; c < channels; ++c)
    for (std::int64_t i = c; i < rows * channels; i += channels) y[i] = one(x[i], grids[c]);
  for (std::int64_t i = rows * channels; i < n; ++i) y[i] = one(x[i], grids[i % channels]);
}

/// Each block of channels goes through all rows: so as many rows at a time as stay in the nearest caches.
void per_channel(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  constexpr std::int64_t kElements = 8192;
  const std::int64_t step = std::max<std::int64_t>(1, kElements / channels) * channels;
  for (std::int64_t i = 0; i < n; i += step) few_rows(x + i, y + i, std::min(step, n - i), grids, channels);
}

void forward(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  if (channels == 1)
    per_tensor(x, y, n, grids[0]);
  else
    per_channel(x, y, n, grids, channels);
}

int supported() { return __builtin_cpu_supports("avx2") ? 1 : 0; }

[[maybe_unused]] const bool registered = register_fake_quant_kernel(fake_quant_kernel{.name = "avx2_loop",
                                                                                      .forward = forward,
                                                                                      .forward_mask = nullptr,
                                                                                      .backward_mask = nullptr,
                                                                                      .min_max = nullptr,
                                                                                      .backward_learned = nullptr,
                                                                                      .set_threads = nullptr,
                                                                                      .supported = supported});

}  // namespace
}  // namespace miniqat::bench

#endif
