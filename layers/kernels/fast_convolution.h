#pragma once

#include "core/kernels/onednn.h"
#include "core/tensors/window.h"

/// Convolutions of floats, NHWC, and their gradients by whatever is fastest for their shape: oneDNN, or products of
/// matrices, direct_convolution.h or winograd.h here. `window` is what the convolution's attributes say.
namespace miniqat::layers {

void fast_convolution(const onednn::Convolution& convolution, const Window2d& window, const float* x,
                      const float* filter, float* y);
void fast_convolution_backward_input(const onednn::Convolution& convolution, const Window2d& window, const float* d_y,
                                     const float* filter, float* d_x);
void fast_convolution_backward_filter(const onednn::Convolution& convolution, const Window2d& window, const float* x,
                                      const float* d_y, float* d_filter);

bool has_padding(const onednn::Convolution& convolution);

}  // namespace miniqat::layers
