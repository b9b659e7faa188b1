#pragma once

#include "layers/kernels/direct_convolution.h"

/// Convolutions by 3x3 filters with strides of 1 in 16 products for 2x2 outputs instead of 36: F(2x2, 3x3) of Lavin and
/// Gray, "Fast Algorithms for Convolutional Neural Networks" (2016), with both gradients. The numbers of in and out
/// channels are multiples of 16, pads at most 2; fast_convolution.cpp knows where they are faster.
///
/// Roundings are smaller than those of plain sums, for there are fewer: for random numbers in resnet20's shapes 0.2 to
/// 0.9 of oneDNN's. But an output is a sum over products of pixels with sums of the filter's taps, of which parts
/// cancel, and an element of the filter's gradient one over the neighbouring taps' products, too: beside much larger
/// ones the error is relative to these. Results depend on the instruction set in their last bits, the gradient of the
/// filter also on the number of threads; they are the same from run to run.
namespace miniqat::layers {

/// Channels of both sides are multiples of this.
inline constexpr std::int64_t kWinogradChannels = 16;

void winograd_convolution(const DirectConvolution& convolution, const float* x, const float* filter, float* y);
void winograd_backward_input(const DirectConvolution& convolution, const float* d_y, const float* filter, float* d_x);
void winograd_backward_filter(const DirectConvolution& convolution, const float* x, const float* d_y, float* d_filter);

}  // namespace miniqat::layers
