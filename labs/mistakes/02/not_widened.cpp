// The hint must say: You do not widen
#include <algorithm>
#include <cmath>

#include "labs/02-rounding-and-nudging/lab.h"

namespace lab02 {

float fake_quantize(float min, float max, int bits, float x) {
  const Grid grid = grid_for(min, max, bits);
  const float q = std::floor(x / grid.scale + grid.zero_point + 0.5F);
  return grid.scale * (std::clamp(q, 0.0F, std::exp2f(bits) - 1) - grid.zero_point);
}

}  // namespace lab02
