#pragma once

#include <string>
#include <vector>

#include "benchmarks/suite/kernel_bench.h"
#include "benchmarks/suite/measure/this_machine.h"

namespace miniqat::benchmarks {

/// An SVG picture, light or dark as the reader's system is: elements a nanosecond against elements, both axes
/// logarithmic. There is a panel for each number of threads, width and layout. Each shows memcpy (dashed) and the sizes
/// at which x and y fill a cache. Colours tell operations, marks tell kernels. `title` is one line. Throws Error for
/// fewer than two sizes, which make no line.
std::string throughput_svg(const std::vector<KernelTime>& rows, const std::vector<Cache>& caches,
                           const std::string& title);

}  // namespace miniqat::benchmarks
