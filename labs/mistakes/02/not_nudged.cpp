// The hint must say: Your grid begins at min
#include <algorithm>
#include <cmath>

#include "labs/02-rounding-and-nudging/lab.h"

namespace lab02 {

float fake_quantize(float min, float max, int bits, float x) {
  const float low = std::min(min, 0.0F), high = std::max(max, 0.0F);
  const float scale = (high - low) / ((1 << bits) - 1);
  const float inside = std::clamp(x, low, high);
  return low + scale * std::floor((inside - low) / scale + 0.5F);
}

}  // namespace lab02
