#pragma once

#include <cstdint>

#include "core/kernels/onednn.h"

/// Which products of bytes are exact here, and the gradients of a convolution from bytes.
namespace miniqat::onednn {

/// The largest magnitude of a signed byte whose products with unsigned bytes oneDNN sums up exactly on this machine; 0
/// where it has no such kernels worth having. Without VNNI its kernels add pairs of products in 16 bits, which 64
/// holds.
int exact_byte();

/// Whether products of signed bytes, -128..127 on both sides, are exact on this machine: with AVX-512 VNNI and AMX.
/// (Those that oneDNN has for AVX2 with VNNI were not tried.)
bool has_signed_bytes();

// Where has_signed_bytes(): sums are exact, in 32 bits, which no sum may leave.

/// d_output and filter -128..127. Not depthwise.
void convolve_backward_input(const Convolution& convolution, const std::int8_t* d_output, const std::int8_t* filter,
                             std::int32_t* d_input);
/// d_filter[.., c] = scales[c] * sum of (input - zero) * d_output[.., c], the sums exact,
/// each rounded once. input 0..255, d_output -128..127; padding is `zero`. Not depthwise; output pictures of at most
/// 65,536 pixels.
void convolve_backward_filter(const Convolution& convolution, const std::uint8_t* input, std::uint8_t zero,
                              const std::int8_t* d_output, const float* scales, float* d_filter);

}  // namespace miniqat::onednn
