// The hint must say: that of signed integers
#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  const float scale = (max - min) / ((1 << bits) - 1);
  return {scale, static_cast<int>(std::lround(-min / scale)) - (1 << (bits - 1))};
}

}  // namespace lab01
