#include "labs/09-calibration-and-training/lab.h"

namespace lab09 {

// The float weights after a step of quantization-aware training. Check it with ./labs/check 09
Values train_step(const Values& weights, const Grid& grid, const Batch& batch, double rate) {
  // Your code here. fake_quantize(grid, w) and gradient_passes(grid, w) are those of labs 2 and 4.
  return {};
}

}  // namespace lab09
