// The hint must say: your zero point is always 0
#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

Grid grid_for(float min, float max, int bits) {
  const float scale = (max - min) / ((1 << bits) - 1);
  return {scale, 0};
}

}  // namespace lab01
