#include "labs/02-rounding-and-nudging/lab.h"

namespace lab02 {

// x on the grid of [min, max] with 2^bits integers: a real number, not the integer. Check it with ./labs/check 02
float fake_quantize(float min, float max, int bits, float x) {
  // Your code here. grid_for(min, max, bits) gives scale and zero point of a range that contains 0.
  return 0;
}

}  // namespace lab02
