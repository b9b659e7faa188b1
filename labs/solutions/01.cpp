#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  const int steps = (1 << bits) - 1;
  Grid grid;
  grid.scale = (max - min) / steps;
  grid.zero_point = static_cast<int>(std::lround(-min / grid.scale));
  return grid;
}

}  // namespace lab01
