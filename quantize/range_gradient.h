#pragma once

#include <span>

#include "quantize/fake_quant.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::quantize {

/// d_min and d_max (each may be null) of every channel, from what backward summed up over its elements.
///
/// Outside of the range y is one of its ends and follows it: d_min = sum of dy below, d_max = sum of dy above. For a
/// range that is taken as it is, that is all. A learned one also counts what its width does to the numbers inside (LSQ,
/// Esser et al. 2020, eq. 3; with two ends LSQ+, Bhalgat et al. 2020, eq. 6). There y = x + s * r, with r the rounding
/// in steps of the scale s = (max - min) / N, N = quant_max - quant_min. The straight-through estimator holds r, and
/// takes the zero point for an unrounded number:
///   dy/ds = r = (y - x) / s,  so  d_max += sum of dy * (y - x) / (N * s)  and  d_min -= the same.
///
/// A symmetric range has one parameter, its width, and each end takes half of its gradient. D = min * d_min + max *
/// d_max (of the above) is the derivative after the logarithm of the width. d_min becomes D / (2 * min), d_max becomes
/// D / (2 * max). A scale that is a power of two passes its gradient straight through the rounding of its logarithm
/// (Jain et al. 2020, eq. 5): the above holds for the ends of the grid, which move by the factor of the stored ends.
/// Steps that multiply the ends (optim/log_adam.h) then move both by the same factor.
void range_gradients(const FakeQuantAttributes& attributes, std::span<const Range<float>> ranges,
                     std::span<const RangeSums> sums, float* d_min, float* d_max);

}  // namespace miniqat::quantize
