// The hint must say: there are (1 << bits) - 1 steps
#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  const float scale = (max - min) / ((2 ^ bits) - 1);
  return {scale, static_cast<int>(std::lround(-min / scale))};
}

}  // namespace lab01
