#pragma once

#include "bench/kernel_registry.h"

namespace miniqat::bench {

/// Compares all functions of a kernel with the reference loops, bit for bit (sums within rounding), in a process of its
/// own (run_trial()), on one thread:
/// - 2 to 8 and 16 bits; narrow, symmetric and power-of-two grids; ranges on one side of 0, and empty ones;
/// - all these with one channel and several, and sizes from 0 to 4,099, most of them odd; 70,001 elements at 8 bits;
/// - ties and their neighbours, the grid's ends, NaN, infinities, both zeros, denormals;
/// - in place and not; at the begin and at the end of a page that nothing may touch beyond.
/// Throws Error: "kernel NAME: forward, 4 bits, ...: element 5 ...".
void require_right(const NamedKernel& kernel);

}  // namespace miniqat::bench
