// The hint must say: You have only the numbers beyond the range
#include "labs/06-learned-ranges/lab.h"

namespace lab06 {

Ends range_gradient(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  Ends ends;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = double{fake_quantize(grid, x[i])} - x[i], width = double{grid.max} - grid.min;
    const bool below = x[i]<grid.min, above = x[i]> grid.max;
    if (below) ends.d_min += d_y[i];
    if (above) ends.d_max += d_y[i] + 0 * off / width;
  }
  return ends;
}

}  // namespace lab06
