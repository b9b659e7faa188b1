// The hint must say: the wrong sign
#include "labs/06-learned-ranges/lab.h"

namespace lab06 {

Ends range_gradient(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  Ends ends;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = double{fake_quantize(grid, x[i])} - x[i], width = double{grid.max} - grid.min;
    const bool below = x[i]<grid.min, above = x[i]> grid.max;
    const double share = below || above ? 0 : d_y[i] * off / width;
    ends.d_min += below ? d_y[i] : share;
    ends.d_max += above ? d_y[i] : -share;
  }
  return ends;
}

}  // namespace lab06
