// The hint must say: You change the weights after each example
#include "labs/09-calibration-and-training/lab.h"

namespace lab09 {

Values train_step(const Values& weights, const Grid& grid, const Batch& batch, double rate) {
  Values updated = weights;
  for (std::size_t n = 0; n < batch.x.size(); ++n) {
    double output = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) output += batch.x[n][i] * fake_quantize(grid, updated[i]);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (gradient_passes(grid, updated[i])) updated[i] -= rate * 2 * (output - batch.target[n]) * batch.x[n][i];
  }
  return updated;
}

}  // namespace lab09
