// The hint must say: You go back from nudged_min
#include <algorithm>
#include <cmath>

#include "labs/10-kernel-ladder/lab.h"

namespace lab10 {

void round_tensor(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  for (std::int64_t i = 0; i < n; ++i) {
    const fake_quant_grid& grid = grids[i % channels];
    const float clamped = std::clamp(x[i], grid.nudged_min, grid.nudged_max);
    const float q = std::floor((clamped - grid.nudged_min) / grid.scale + 0.5F);
    y[i] = grid.nudged_min + q * grid.scale;
  }
}

}  // namespace lab10
