/* What a kernel of your own is to `miniqat bench`: C functions on float32 arrays. This file needs nothing else of
 * miniqat, so that a shared library can be made from it alone (docs/own-kernel.md):
 *
 *   cc -O3 -ffp-contract=off -shared -fPIC -I DIRECTORY_OF_THIS_FILE my_kernel.c -lm -o my_kernel.so
 *   miniqat bench --plugin ./my_kernel.so
 *
 * Tensors are flat: element i of n belongs to channel i % channels, whose grid is grids[i % channels]; per tensor there
 * is one channel. n may be any number, 0 too, and need not be a multiple of channels. Pointers are aligned to 4 bytes,
 * no more. The results of different calls do not overlap; functions are called from several threads at once, whose
 * processors take denormal numbers for 0. The rounding mode and other switches of a processor must stay as they are.
 */
#ifndef MINIQAT_FAKE_QUANT_PLUGIN_H
#define MINIQAT_FAKE_QUANT_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_QUANT_PLUGIN_VERSION 1

/* A grid of equidistant numbers, in which 0 is one of them; all members are whole numbers but scale and the last two.
 * fake_quantize(x) is, operation by operation in float32 (a fused multiply-add or a product with 1 / scale has other
 * bits):
 *
 *   raised  = x < nudged_min ? nudged_min : x                        a NaN stays a NaN
 *   clamped = raised > nudged_max ? nudged_max : raised
 *   q       = quant_min + floor((clamped - nudged_min) / scale + 0.5f)
 *   y       = (q - zero_point) * scale                               never -0
 *
 * An empty grid has nudged_min == nudged_max == 0 and scale 1. */
// NOLINTBEGIN(modernize-use-using): C reads this header, too.
typedef struct fake_quant_grid {
  float scale;
  float zero_point;
  float quant_min;
  float quant_max;
  /* (quant_min - zero_point) * scale and (quant_max - zero_point) * scale. */
  float nudged_min;
  float nudged_max;
} fake_quant_grid;

/* What the gradients of a learned range's ends are made of; all 0 for an empty grid. */
typedef struct fake_quant_sums {
  /* dy where x < nudged_min, and where x > nudged_max. */
  double below;
  double above;
  /* dy * (fake_quantize(x) - x) where nudged_min <= x <= nudged_max. */
  double inside;
} fake_quant_sums;

/* The functions of a kernel. Null is what it does not have: that is not measured. Memory beyond the n elements must not
 * be touched. */
typedef struct fake_quant_kernel {
  /* Letters, digits, _ and -; neither an operation's name nor miniqat. If another file has a kernel of this name, too,
   * the bench calls both by it and their files. */
  const char* name;
  /* y = fake_quantize(x). y may be x. */
  void (*forward)(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels);
  /* The same, and notes in `mask`, in any layout, where the gradient passes: where nudged_min <= x <= nudged_max, and
   * everywhere for an empty grid. mask is 64-byte aligned and has room for n + 64 bytes. */
  void (*forward_mask)(const float* x, float* y, int64_t n, const fake_quant_grid* grids, int64_t channels, void* mask);
  /* dx = dy where the gradient passes by the mask of forward_mask with the same n, else 0. dx may be dy. */
  void (*backward_mask)(const float* dy, float* dx, int64_t n, const void* mask);
  /* min[c] and max[c] of the elements of each channel, NaNs left aside, +infinity and -infinity for none. The sign of a
   * zero does not matter. Returns whether there was a NaN. */
  int (*min_max)(const float* x, int64_t n, int64_t channels, float* min, float* max);
  /* dx = dy where the gradient passes at x, else 0, and sums[c] of each channel. dx may be dy. The order of summation
   * is free; sums are compared within rounding. */
  void (*backward_learned)(const float* x, const float* dy, float* dx, int64_t n, const fake_quant_grid* grids,
                           int64_t channels, fake_quant_sums* sums);
  /* Null: the bench cuts tensors into pieces, one or more a thread, which begin at channel 0. Else the kernel has
   * threads of its own: it is told their number, and then given whole tensors by one thread. */
  void (*set_threads)(int32_t threads);
  /* Null, or returns whether this processor can run the kernel. If not, no other function is called. */
  int (*supported)(void);
} fake_quant_kernel;

/* What the function `miniqat_fake_quant_plugin` of a shared library returns. It stays as it is. */
typedef struct fake_quant_plugin {
  /* FAKE_QUANT_PLUGIN_VERSION */
  int32_t version;
  int32_t count;
  const fake_quant_kernel* kernels;
} fake_quant_plugin;
// NOLINTEND(modernize-use-using)

const fake_quant_plugin* miniqat_fake_quant_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
