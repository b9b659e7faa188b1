#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/tensors/bfloat16.h"
#include "core/tensors/shape.h"

/// The heavy arithmetic, done by oneDNN behind functions that take our layouts. Kernels are compiled at their first use
/// and kept for the shapes (and the thread count) at hand. They and the growing scratch buffer that they share belong
/// to the calling thread: several threads may compute at once, each compiles for itself. All functions here spread over
/// thread_count() threads, and throw Error naming the operation and its shapes when oneDNN refuses.
namespace miniqat::onednn {

/// A 2-D cross-correlation of float32 NHWC images with a filter [kh, kw, in, out], or for depthwise
/// [kh, kw, in, multiplier], where output channel in * multiplier + m sees input channel `in` only.
struct Convolution {
  /// [n, h, w, c]
  Shape input;
  Shape filter;
  /// [n, h, w, c]
  Shape output;
  /// Each [h, w].
  std::array<std::int64_t, 2> strides = {1, 1};
  /// Along an extent of 1 of the filter they mean nothing.
  std::array<std::int64_t, 2> dilations = {1, 1};
  std::array<std::int64_t, 2> pad_before = {0, 0};
  std::array<std::int64_t, 2> pad_after = {0, 0};
  bool depthwise = false;

  /// Whether a window is one pixel of its own: a 1x1 filter without strides and padding.
  bool has_windows_of_a_pixel() const {
    const std::array<std::int64_t, 2> one = {1, 1}, none = {0, 0};
    return filter[0] * filter[1] == 1 && strides == one && pad_before == none && pad_after == none;
  }
};

void convolve(const Convolution& convolution, const float* input, const float* filter, float* output);
void convolve_backward_input(const Convolution& convolution, const float* d_output, const float* filter,
                             float* d_input);
void convolve_backward_filter(const Convolution& convolution, const float* input, const float* d_output,
                              float* d_filter);

/// Integers: input 0..255, filter within +-exact_byte() (core/kernels/onednn_bytes.h), output the exact sums, 32 bits
/// each; no sum may leave these. Padding is 0.
void convolve(const Convolution& convolution, const std::uint8_t* input, const std::int8_t* filter,
              std::int32_t* output);
/// The same where has_signed_bytes(), of input and filter -128..127.
void convolve(const Convolution& convolution, const std::int8_t* input, const std::int8_t* filter,
              std::int32_t* output);

/// Whether oneDNN multiplies bfloat16 on this machine: with AVX-512 BF16 or AMX. The functions of bfloat16 need it.
/// Factors and sums that are denormal may count as 0.
bool has_bfloat16();
/// Whether it does so faster than with float32: with AMX, and on processors that are not Intel's. Without AMX Intel's
/// multiply half as many in a cycle (VDPBF16PS in the tables of uops.info).
bool has_fast_bfloat16();

// The products of above, from factors of bfloat16; sums are float32.

void convolve(const Convolution& convolution, const Bfloat16* input, const Bfloat16* filter, float* output);
void convolve_backward_input(const Convolution& convolution, const Bfloat16* d_output, const Bfloat16* filter,
                             float* d_input);
void convolve_backward_filter(const Convolution& convolution, const Bfloat16* input, const Bfloat16* d_output,
                              float* d_filter);

/// The primitives that this thread has compiled so far: oneDNN's name of the implementation ("brgconv:avx512_core") by
/// operation and shapes.
std::map<std::string, std::string> compiled_kernels();

}  // namespace miniqat::onednn
