// The hint must say: Your scale ignores min
#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  Grid grid;
  grid.scale = max / ((1 << bits) - 1);
  if (grid.scale > 0) grid.zero_point = static_cast<int>(std::lround(-min / grid.scale));
  return grid;
}

}  // namespace lab01
