#pragma once

#include <cstdint>

#include "core/tensors/window.h"

/// Convolutions of few channels, for which oneDNN pads too much or lacks a kernel: vectorised over the output channels
/// (the gradient of the input: over a window's row of input channels) with several pixels in registers, straight from
/// NHWC images. Right for any shape and stride without dilation; fast_convolution.cpp knows where they are faster.
/// Results depend on the instruction set in their last bits (fused multiply-adds where it has them), the gradient of
/// the filter also on the number of threads; they are the same from run to run.
namespace miniqat::layers {

/// x [batch, h, w, in], filter [kh, kw, in, out], y [batch, oh, ow, out], all float32.
struct DirectConvolution {
  /// Lays the filter over x; dilations 1.
  Window2d window;
  std::int64_t batch = 1;
  std::int64_t in = 1;
  std::int64_t out = 1;
};

void direct_convolution(const DirectConvolution& convolution, const float* x, const float* filter, float* y);
void direct_convolution_backward_input(const DirectConvolution& convolution, const float* d_y, const float* filter,
                                       float* d_x);
void direct_convolution_backward_filter(const DirectConvolution& convolution, const float* x, const float* d_y,
                                        float* d_filter);

}  // namespace miniqat::layers
