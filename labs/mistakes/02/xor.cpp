// The hint must say: You write 2 ^ bits
#include <algorithm>
#include <cmath>

#include "labs/02-rounding-and-nudging/lab.h"

namespace lab02 {

float fake_quantize(float min, float max, int bits, float x) {
  const Grid grid = grid_for(std::min(min, 0.0F), std::max(max, 0.0F), bits);
  const int q = static_cast<int>(std::floor(x / grid.scale + grid.zero_point + 0.5F));
  return grid.scale * (std::clamp(q, 0, 2 ^ (bits - 1)) - grid.zero_point);
}

}  // namespace lab02
