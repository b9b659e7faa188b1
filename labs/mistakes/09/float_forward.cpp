// The hint must say: You compute the output with float weights
#include "labs/09-calibration-and-training/lab.h"

namespace lab09 {

Values train_step(const Values& weights, const Grid& grid, const Batch& batch, double rate) {
  Values updated = weights, used = weights;
  used = weights;
  for (std::size_t n = 0; n < batch.x.size(); ++n) {
    double output = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) output += batch.x[n][i] * used[i];
    const double d_output = 2 * (output - batch.target[n]) / batch.x.size();
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (gradient_passes(grid, weights[i])) updated[i] -= rate * d_output * batch.x[n][i];
  }
  return updated;
}

}  // namespace lab09
