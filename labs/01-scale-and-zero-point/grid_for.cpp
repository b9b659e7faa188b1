#include "labs/01-scale-and-zero-point/lab.h"

namespace lab01 {

// Scale and zero point for the range [min, max] with 2^bits integers. Check it with ./labs/check 01
Grid grid_for(float min, float max, int bits) {
  Grid grid;
  // Your code here: grid.scale = ...; grid.zero_point = ...;
  return grid;
}

}  // namespace lab01
