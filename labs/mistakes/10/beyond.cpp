// The hint must say: You write behind the end
#include <algorithm>
#include <cmath>

#include "labs/10-kernel-ladder/lab.h"

namespace lab10 {

void round_tensor(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  for (std::int64_t row = 0; row < n; row += channels)
    for (std::int64_t c = 0; c < channels; ++c) {
      const fake_quant_grid& grid = grids[c];
      const float clamped = std::clamp(x[row + c], grid.nudged_min, grid.nudged_max);
      const float q = grid.quant_min + std::floor((clamped - grid.nudged_min) / grid.scale + 0.5F);
      y[row + c] = (q - grid.zero_point) * grid.scale;
    }
}

}  // namespace lab10
