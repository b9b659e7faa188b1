// The hint must say: Your gradient stops at nudged_max
#include "labs/04-straight-through-estimator/lab.h"

namespace lab04 {

std::vector<float> straight_through(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  std::vector<float> d_x;
  for (std::size_t i = 0; i < x.size(); ++i)
    d_x.push_back(x[i] >= grid.nudged_min && x[i] < grid.nudged_max ? d_y[i] : 0);
  return d_x;
}

}  // namespace lab04
