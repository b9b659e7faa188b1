// The hint must say: You divide by the number of integers
#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  Grid grid;
  grid.scale = (max - min) / std::exp2f(static_cast<float>(bits));
  grid.zero_point = static_cast<int>(std::lround(-min / grid.scale));
  return grid;
}

}  // namespace lab01
