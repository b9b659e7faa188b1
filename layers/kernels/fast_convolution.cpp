#include "layers/kernels/fast_convolution.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_matrix.h"
#include "layers/kernels/direct_convolution.h"
#include "layers/kernels/winograd.h"

namespace miniqat::layers {
namespace {

/// A 1x1 convolution without stride is a product of matrices: pixels [n * h * w, in] times the filter [in, out].
/// oneDNN's convolutions are as fast or faster while there are many pixels; where the filter has the most elements,
/// they spend much on bringing it into their own order. Measured: products win below these many pixels for each channel
/// of the wider side, in the gradient of the filter by up to 1.7.
constexpr double kProductPixels = 0.5;
constexpr double kFilterGradientProductPixels = 2;

bool is_product(const onednn::Convolution& c, double pixels_per_channel) {
  const auto pixels = static_cast<double>(c.input[0] * c.input[1] * c.input[2]);
  return !c.depthwise && c.filter[0] * c.filter[1] == 1 && c.input[1] == c.output[1] && c.input[2] == c.output[2] &&
         pixels <= pixels_per_channel * static_cast<double>(std::max(c.filter[2], c.filter[3]));
}

/// Pixels by channels.
onednn::Matrix pixels_of(const Shape& images, const float* data) {
  return onednn::Matrix::row_major(data, images[0] * images[1] * images[2], images[3]);
}

onednn::Matrix matrix_of(const Shape& filter, const float* data) {
  return onednn::Matrix::row_major(data, filter[2], filter[3]);
}

// Which kernels are faster where there are few channels was measured, ours or oneDNN's (which pads channels to whole
// vectors), in turns on one and two threads of a Zen 4. What follows is how many times faster ours are on two threads,
// with AVX-512 / AVX2 / baseline; images are [h = w] x channels, SAME unless said.

constexpr std::int64_t kFewChannels = 8;

bool is_direct(const onednn::Convolution& c) {
  const auto dilated = [&](int axis) { return c.dilations[axis] > 1 && c.filter[axis] > 1; };
  return !c.depthwise && !dilated(0) && !dilated(1);
}

/// 28x1 to 6 by 5x5: 1.8 / 1.2 / 2.1; 28x6 to 8 by 5x5: 1.3 / 2.0 / 2.4; 56x16 to 8 by 3x3: 1.3 / 1.35 / 1.3.
/// 14x6 to 16 by 5x5 VALID: 1.2 / 1.3 / 1.9; SAME only 0.8 with AVX-512: oneDNN skips the padding.
/// 28x1 to 32 by 5x5: 1.2 / 0.8 / 1.6; to 64 by 3x3: 0.6; 32x3 to 32 by 3x3: 1.0.
bool has_faster_forward(const onednn::Convolution& c) {
  if (!is_direct(c)) return false;
  const std::int64_t in = c.filter[2], out = c.filter[3];
  if (out <= kFewChannels) return true;
  if (in == 1 && out <= 32 && instruction_set() != InstructionSet::kAvx2) return true;
  return in <= kFewChannels && out <= 16 && !has_padding(c);
}

/// 14x6 to 16 by 5x5 VALID: 1.8 / 1.2 / 1.8; 28x8 to 64 by 3x3: 1.3 / 1.5 / 1.1. With fewer output channels (28x8 to 8
/// by 3x3: 1.0 / 0.7 / 1.9), strides (28x6 to 16: 0.95 / 0.7 / 1.4) or a 1x1 filter (0.9) there is less to gain.
bool has_faster_backward_input(const onednn::Convolution& c) {
  return is_direct(c) && c.filter[2] <= kFewChannels && c.filter[3] >= 16 && c.filter[0] * c.filter[1] > 1 &&
         c.strides == std::array<std::int64_t, 2>{1, 1};
}

/// 28x1 to 6 by 5x5: 1.4 / 1.2 / 3.8; 28x6 to 8 by 5x5: 1.4 / 0.8 / 3.2; 28x1 to 32 by 5x5: 1.0 / 1.1 / 1.9; 14x6 to 16
/// by 5x5: 0.8. Where an image of gradients exceeds the second cache, oneDNN's several passes over it cost:
/// 224x3 to 32 by 3x3 with stride 2: 1.3 / 1.3 / 1.2; 112x3 to 32: 1.6.
bool has_faster_backward_filter(const onednn::Convolution& c) {
  if (!is_direct(c)) return false;
  constexpr std::int64_t kLargeImage = (std::int64_t{1} << 20) / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t in = c.filter[2], out = c.filter[3];
  if (in <= 3 && out <= 32 && c.output[1] * c.output[2] * out >= kLargeImage) return true;
  const std::int64_t most = instruction_set() == InstructionSet::kAvx2 ? 3 : 16;
  return in <= most && out <= kFewChannels;
}

/// Times faster than oneDNN's on one thread of a Xeon, forward / gradient of the input / of the filter, with AVX2:
/// 32x16 to 16: 1.4 / 1.2 / 1.3; 16x32 to 32: 1.5 / 1.5 / 1.7; 8x64 to 64: 1.6 / 1.5 / 1.6; 28x128 to 128: 1.8 / 1.7 /
/// 1.9; 14x256 to 256: 1.5 / 1.4 / 1.8. With AVX-512: 1.0 / 1.1 / 1.0; 1.4 / 1.3 / 1.2; 1.4 / 1.4 / 1.4; 1.4 / 1.6 /
/// 1.6; 1.1 / 1.1 / 1.2. Baseline: 1.9 to 3. Too few patches do not repay the transforms of the filter: 8x64 to 64 with
/// 16 patches 1.1 / 0.7 / 1.2, 7x512 to 512 with 128 1.1 / 0.8 / 1.1. 5x5 pixels fill only 25 of 36: 1.0.
bool has_faster_winograd(const onednn::Convolution& c) {
  const std::array<std::int64_t, 2> one = {1, 1}, window = {c.filter[0], c.filter[1]};
  const bool fits = !c.depthwise && window == std::array<std::int64_t, 2>{3, 3} && c.strides == one &&
                    c.dilations == one && c.filter[2] % kWinogradChannels == 0 && c.filter[3] % kWinogradChannels == 0;
  constexpr std::int64_t kPatchesForAChannel = 2;
  const std::int64_t in = c.filter[2], out = c.filter[3], least = std::min(in, out);
  const std::int64_t few = instruction_set() == InstructionSet::kAvx512 ? 32 : 16;
  const std::int64_t patches = (c.output[1] + 1) / 2 * ((c.output[2] + 1) / 2);
  return fits && least >= few && c.output[1] * c.output[2] >= 3 * patches &&
         c.output[0] * patches >= kPatchesForAChannel * std::max(in, out);
}

DirectConvolution direct(const onednn::Convolution& c, const Window2d& window) {
  return {.window = window, .batch = c.input[0], .in = c.filter[2], .out = c.filter[3]};
}

}  // namespace

bool has_padding(const onednn::Convolution& c) {
  const std::array<std::int64_t, 2> none = {0, 0};
  return c.pad_before != none || c.pad_after != none;
}

void fast_convolution(const onednn::Convolution& c, const Window2d& window, const float* x, const float* filter,
                      float* y) {
  if (is_product(c, kProductPixels))
    onednn::multiply(pixels_of(c.input, x), matrix_of(c.filter, filter), y);
  else if (has_faster_winograd(c))
    winograd_convolution(direct(c, window), x, filter, y);
  else if (has_faster_forward(c))
    direct_convolution(direct(c, window), x, filter, y);
  else
    onednn::convolve(c, x, filter, y);
}

void fast_convolution_backward_input(const onednn::Convolution& c, const Window2d& window, const float* d_y,
                                     const float* filter, float* d_x) {
  if (is_product(c, kProductPixels))
    onednn::multiply(pixels_of(c.output, d_y), matrix_of(c.filter, filter).transposed(), d_x);
  else if (has_faster_winograd(c))
    winograd_backward_input(direct(c, window), d_y, filter, d_x);
  else if (has_faster_backward_input(c))
    direct_convolution_backward_input(direct(c, window), d_y, filter, d_x);
  else
    onednn::convolve_backward_input(c, d_y, filter, d_x);
}

void fast_convolution_backward_filter(const onednn::Convolution& c, const Window2d& window, const float* x,
                                      const float* d_y, float* d_filter) {
  if (is_product(c, kFilterGradientProductPixels))
    onednn::multiply(pixels_of(c.input, x).transposed(), pixels_of(c.output, d_y), d_filter);
  else if (has_faster_winograd(c))
    winograd_backward_filter(direct(c, window), x, d_y, d_filter);
  else if (has_faster_backward_filter(c))
    direct_convolution_backward_filter(direct(c, window), x, d_y, d_filter);
  else
    onednn::convolve_backward_filter(c, x, d_y, d_filter);
}

}  // namespace miniqat::layers
