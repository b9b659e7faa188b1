// The hint must say: You return the integer q
#include <algorithm>
#include <cmath>

#include "labs/02-rounding-and-nudging/lab.h"

namespace lab02 {

float fake_quantize(float min, float max, int bits, float x) {
  const Grid grid = grid_for(std::min(min, 0.0F), std::max(max, 0.0F), bits);
  const float q = std::clamp(std::floor(x / grid.scale + static_cast<float>(grid.zero_point) + 0.5F), 0.0F,
                             static_cast<float>((1 << bits) - 1));
  return q;
}

}  // namespace lab02
