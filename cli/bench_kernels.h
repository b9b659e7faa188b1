#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench_clock.h"

namespace miniqat::cli {

struct KernelTime {
  std::string kernel;
  bool per_channel = false;
  std::int64_t elements = 0;
  /// Median of one call.
  double seconds = 0;
  /// Bytes that the call reads and writes at least.
  double bytes = 0;
  /// Elements a second as a multiple of memcpy's on as many elements, taken in turns.
  Spread of_memcpy;
};

/// memcpy, then the loops of fake quantization (8 bits; per channel: 64 channels) on tensors of `elements`
/// (which are channels 0 to 63 again and again, the last time maybe not all), memcpy's own row first. Throws Error when
/// a loop differs from the reference in any bit.
std::vector<KernelTime> bench_kernels(std::int64_t elements, double budget_seconds);

}  // namespace miniqat::cli
