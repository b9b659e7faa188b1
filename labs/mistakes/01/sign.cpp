// The hint must say: The sign of your zero point
#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  Grid grid;
  grid.scale = (max - min) / ((1 << bits) - 1);
  grid.zero_point = static_cast<int>(std::lround(min / grid.scale));
  return grid;
}

}  // namespace lab01
