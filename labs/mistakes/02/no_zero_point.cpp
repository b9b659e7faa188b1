// The hint must say: You leave out the zero point
#include <algorithm>
#include <cmath>

#include "labs/02-rounding-and-nudging/lab.h"

namespace lab02 {

float fake_quantize(float min, float max, int bits, float x) {
  const Grid grid = grid_for(std::min(min, 0.0F), std::max(max, 0.0F), bits);
  const float q = std::clamp(std::floor(x / grid.scale + 0.5F), 0.0F, static_cast<float>((1 << bits) - 1));
  return grid.scale * q;
}

}  // namespace lab02
