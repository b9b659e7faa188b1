#pragma once

#include "core/tensors/window.h"

/// The gradients of a depthwise convolution with one filter a channel (multiplier 1), vectorised over the channels of
/// NHWC images. The result is the same on every instruction set. Shapes: x [batch, h, w, channels], filter [kh, kw,
/// channels], y [batch, oh, ow, channels], all float32; `window` lays the filter over x.
namespace miniqat::layers {

void depthwise_backward_input(const Window2d& window, std::int64_t batch, std::int64_t channels, const float* d_y,
                              const float* filter, float* d_x);
/// The sums' order, and so their last bits, depends on the number of threads.
void depthwise_backward_filter(const Window2d& window, std::int64_t batch, std::int64_t channels, const float* x,
                               const float* d_y, float* d_filter);

}  // namespace miniqat::layers
