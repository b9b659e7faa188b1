#pragma once

#include <span>
#include <string>

#include "bench/kernel_registry.h"
#include "bench/kernels/fake_quant_plugin.h"
#include "quantize/affine.h"

namespace miniqat::bench {

/// Numbers that a kernel made, and those that the reference makes of the same x.
struct Comparison {
  std::span<const float> x;
  std::span<const float> expected;
  std::span<const float> got;
  /// Element i belongs to grids[i % size]; empty where grids do not matter.
  std::span<const quantize::Affine<float>> grids;
};

/// "element 5 of 17 (channel 2): expected 0.25, got 0.5 for x = 0.3; elements 3 to 7: x ..., expected ..., got ...;
/// grid: scale ..." for the first element whose bits differ, where any NaN is like any other. Empty when there is none.
std::string difference(const Comparison& all);

/// Compares what backward_learned summed up with plain loops in double, within the rounding of float32 products and of
/// another order. "sums of channel 2: expected below 1, above 2, inside 3, got ..."; empty when they agree.
std::string sums_difference(std::span<const float> x, std::span<const float> dy,
                            std::span<const quantize::Affine<float>> grids, std::span<const fake_quant_sums> got);

/// Compares all functions of a kernel with the reference loops, bit for bit (sums within rounding), in a process of its
/// own (run_trial()), on one thread:
/// - 2 to 8 and 16 bits; narrow, symmetric and power-of-two grids; ranges on one side of 0, and empty ones;
/// - all these with one channel and several, and sizes from 0 to 4,099, most of them odd; 70,001 elements at 8 bits;
/// - ties and their neighbours, the grid's ends, NaN, infinities, both zeros, denormals;
/// - in place and not; at the begin and at the end of a page that nothing may touch beyond.
/// Throws Error: "kernel NAME: forward, 4 bits, ...: element 5 ...".
void require_right(const NamedKernel& kernel);

}  // namespace miniqat::bench
