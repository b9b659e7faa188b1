#include "labs/06-learned-ranges/lab.h"

namespace lab06 {

// The gradients with respect to grid.min and grid.max, from d_y, that with respect to y = fake_quantize(grid, x).
// Check it with ./labs/check 06
Ends range_gradient(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  Ends ends;
  // Your code here: ends.d_min = ...; ends.d_max = ...;
  return ends;
}

}  // namespace lab06
