// The hint must say: outside is x < nudged_min or x > nudged_max
#include "labs/04-straight-through-estimator/lab.h"

namespace lab04 {

std::vector<float> straight_through(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  std::vector<float> d_x;
  for (std::size_t i = 0; i < x.size(); ++i)
    d_x.push_back(x[i] <= grid.nudged_min || x[i] >= grid.nudged_max ? 0 : d_y[i]);
  return d_x;
}

}  // namespace lab04
