#pragma once

#include <span>
#include <string>

#include "benchmarks/kernels/fake_quant_plugin.h"
#include "quantize/affine.h"

namespace miniqat::benchmarks {

/// Compares what backward_learned summed up with plain loops in double, within the rounding of float32 products and of
/// another order. "sums of channel 2: expected below 1, above 2, inside 3, got ..."; empty when they agree.
std::string sums_difference(std::span<const float> x, std::span<const float> dy,
                            std::span<const quantize::Affine<float>> grids, std::span<const fake_quant_sums> got);

}  // namespace miniqat::benchmarks
