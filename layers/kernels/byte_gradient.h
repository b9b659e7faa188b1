#pragma once

#include <cstdint>

#include "core/kernels/onednn.h"
#include "core/tensors/packed.h"
#include "layers/kernels/packed_product.h"

namespace miniqat::layers {

/// Whether this processor has exact products of signed bytes, and 32 bits hold the sums that a layer's gradients need.
bool has_exact_byte_gradients(const onednn::Convolution& convolution, const PackedForm& filter);

/// The gradients of a layer that has multiplied integers, from bytes that its output's gradient is rounded to
/// (layers/reference/byte_gradient.h):
///
///   d_x = input_step * sum of byte * (q_filter - zero_point_filter[c])
///   d_filter = filter_step * scale_x / scale_filter[c] * sum of (q_x - zero_point_x) * byte
///
/// All sums are exact. A product of matrices is a convolution of pictures of one pixel.
///
/// `key`: of the random words of d_y's elements, the first of which is number `first`. d_x and d_filter: float32, the
/// shapes of input and filter; null: not wanted.
void byte_backward(const onednn::Convolution& convolution, const PackedFactor& x, const PackedFactor& filter,
                   const float* d_y, std::uint64_t key, std::int64_t first, Tensor* d_x, Tensor* d_filter);

}  // namespace miniqat::layers
