// The hint must say: Inside of the range you leave out d_y
#include "labs/06-learned-ranges/lab.h"

namespace lab06 {

Ends range_gradient(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y) {
  const double width = double{grid.max} - grid.min;
  Ends ends;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = double{fake_quantize(grid, x[i])} - x[i];
    if (x[i] < grid.min) {
      ends.d_min += d_y[i];
    } else if (x[i] > grid.max) {
      ends.d_max += d_y[i];
    } else {
      ends.d_min -= off / width;
      ends.d_max += off / width;
    }
  }
  return ends;
}

}  // namespace lab06
