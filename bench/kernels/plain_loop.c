/* A plugin for `miniqat bench --plugin`, in plain C, with every function that a kernel can have. docs/own-kernel.md
 * walks through it.
 *
 *   cc -O3 -std=c99 -ffp-contract=off -shared -fPIC bench/kernels/plain_loop.c -lm -o plain_loop.so
 */
#include <math.h>
#include <stddef.h>

#include "fake_quant_plugin.h"

static float fake_quantize(float x, const fake_quant_grid* grid) {
  const float raised = x < grid->nudged_min ? grid->nudged_min : x;
  const float clamped = raised > grid->nudged_max ? grid->nudged_max : raised;
  const float q = grid->quant_min + floorf((clamped - grid->nudged_min) / grid->scale + 0.5f);
  return (q - grid->zero_point) * grid->scale;
}

static int passes(float x, const fake_quant_grid* grid) {
  return (x >= grid->nudged_min && x <= grid->nudged_max) || grid->nudged_min == grid->nudged_max;
}

static void forward(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels) {
  for (int64_t i = 0; i < n; ++i) y[i] = fake_quantize(x[i], &grids[i % channels]);
}

/* A byte an element: the simplest of masks. */
static void forward_mask(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels,
                         void* mask) {
  unsigned char* bytes = mask;
  for (int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    bytes[i] = (unsigned char)passes(value, &grids[i % channels]);
    y[i] = fake_quantize(value, &grids[i % channels]);
  }
}

static void backward_mask(const float* dy, float* dx, int64_t n, const void* mask) {
  const unsigned char* bytes = mask;
  for (int64_t i = 0; i < n; ++i) dx[i] = bytes[i] ? dy[i] : 0.0f;
}

static int min_max(const float* x, int64_t n, int64_t channels, float* min, float* max) {
  int has_nan = 0;
  for (int64_t c = 0; c < channels; ++c) {
    min[c] = INFINITY;
    max[c] = -INFINITY;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = i % channels;
    if (x[i] != x[i]) has_nan = 1;
    if (x[i] < min[c]) min[c] = x[i];
    if (x[i] > max[c]) max[c] = x[i];
  }
  return has_nan;
}

static void backward_learned(const float* x, const float* dy, float* dx, int64_t n, const fake_quant_grid* grids,
                             int64_t channels, fake_quant_sums* sums) {
  for (int64_t c = 0; c < channels; ++c) sums[c] = (fake_quant_sums){0, 0, 0};
  for (int64_t i = 0; i < n; ++i) {
    const fake_quant_grid* grid = &grids[i % channels];
    fake_quant_sums* sum = &sums[i % channels];
    const float gradient = dy[i];
    dx[i] = passes(x[i], grid) ? gradient : 0.0f;
    if (grid->nudged_min == grid->nudged_max) continue;
    if (x[i] < grid->nudged_min)
      sum->below += gradient;
    else if (x[i] > grid->nudged_max)
      sum->above += gradient;
    else if (x[i] >= grid->nudged_min)
      sum->inside += gradient * (fake_quantize(x[i], grid) - x[i]);
  }
}

static const fake_quant_kernel kernels[] = {{
    .name = "plain_loop_in_c",
    .forward = forward,
    .forward_mask = forward_mask,
    .backward_mask = backward_mask,
    .min_max = min_max,
    .backward_learned = backward_learned,
}};

const fake_quant_plugin* miniqat_fake_quant_plugin(void) {
  static const fake_quant_plugin plugin = {FAKE_QUANT_PLUGIN_VERSION, 1, kernels};
  return &plugin;
}
