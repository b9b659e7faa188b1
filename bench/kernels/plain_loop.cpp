// A kernel of one's own: the formula in a loop. docs/own-kernel.md begins with it.

#include <cmath>

#include "bench/kernels/fake_quant_kernel.h"

namespace miniqat::bench {
namespace {

void forward(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  for (std::int64_t i = 0; i < n; ++i) {
    const fake_quant_grid& grid = grids[i % channels];
    const float raised = x[i] < grid.nudged_min ? grid.nudged_min : x[i];
    const float clamped = raised > grid.nudged_max ? grid.nudged_max : raised;
    const float q = grid.quant_min + std::floor((clamped - grid.nudged_min) / grid.scale + 0.5f);
    y[i] = (q - grid.zero_point) * grid.scale;
  }
}

[[maybe_unused]] const bool registered = register_fake_quant_kernel("plain_loop", forward);

}  // namespace
}  // namespace miniqat::bench
