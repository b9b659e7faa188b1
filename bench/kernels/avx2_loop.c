/* A plugin for `miniqat bench --plugin`: eight elements at once with AVX2, per tensor. docs/own-kernel.md walks through
 * it. avx2_loop.cpp has vectors of channels, too.
 *
 *   cc -O3 -std=c99 -ffp-contract=off -shared -fPIC bench/kernels/avx2_loop.c -lm -o avx2_loop.so
 */
#include <immintrin.h>
#include <math.h>
#include <stddef.h>

#include "fake_quant_plugin.h"

static float one(float x, const fake_quant_grid* grid) {
  const float raised = x < grid->nudged_min ? grid->nudged_min : x;
  const float clamped = raised > grid->nudged_max ? grid->nudged_max : raised;
  return (grid->quant_min + floorf((clamped - grid->nudged_min) / grid->scale + 0.5f) - grid->zero_point) * grid->scale;
}

__attribute__((target("avx2"))) static void per_tensor(const float* x, float* y, int64_t n,
                                                       const fake_quant_grid* grid) {
  const __m256 scale = _mm256_set1_ps(grid->scale), half = _mm256_set1_ps(0.5f);
  const __m256 offset = _mm256_set1_ps(grid->quant_min - grid->zero_point);
  const __m256 min = _mm256_set1_ps(grid->nudged_min), max = _mm256_set1_ps(grid->nudged_max);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 clamped = _mm256_min_ps(max, _mm256_max_ps(min, _mm256_loadu_ps(x + i)));
    const __m256 steps = _mm256_div_ps(_mm256_sub_ps(clamped, min), scale);
    const __m256 whole = _mm256_floor_ps(_mm256_add_ps(steps, half));
    _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_add_ps(whole, offset), scale));
  }
  for (; i < n; ++i) y[i] = one(x[i], grid);
}

static void forward(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels) {
  if (channels == 1)
    per_tensor(x, y, n, grids);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = one(x[i], &grids[i % channels]);
}

static int supported(void) { return __builtin_cpu_supports("avx2") ? 1 : 0; }

static const fake_quant_kernel kernels[] = {{"avx2_loop_in_c", forward, NULL, NULL, NULL, NULL, NULL, supported}};

const fake_quant_plugin* miniqat_fake_quant_plugin(void) {
  static const fake_quant_plugin plugin = {FAKE_QUANT_PLUGIN_VERSION, 1, kernels};
  return &plugin;
}
