#include "labs/04-straight-through-estimator/lab.h"

namespace lab04 {

// The gradient with respect to x, from d_y, that with respect to y = fake_quantize(grid, x). Check it with
// ./labs/check 04
std::vector<float> straight_through(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  // Your code here.
  return {};
}

}  // namespace lab04
