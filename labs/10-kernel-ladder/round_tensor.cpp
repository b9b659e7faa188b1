#include "labs/10-kernel-ladder/lab.h"

namespace lab10 {

// y = x on its grid: element i belongs to channel i % channels. Check it with ./labs/check 10
void round_tensor(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  // Your code here. The members of a grid: scale, zero_point, quant_min, quant_max, nudged_min, nudged_max.
}

}  // namespace lab10
