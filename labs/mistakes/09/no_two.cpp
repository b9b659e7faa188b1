// The hint must say: half as long
#include "labs/09-calibration-and-training/lab.h"

namespace lab09 {

Values train_step(const Values& weights, const Grid& grid, const Batch& batch, double rate) {
  Values used, gradient(weights.size()), updated = weights;
  for (const double w : weights) used.push_back(fake_quantize(grid, w));
  for (std::size_t n = 0; n < batch.x.size(); ++n) {
    double output = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) output += batch.x[n][i] * used[i];
    for (std::size_t i = 0; i < weights.size(); ++i)
      gradient[i] += (output - batch.target[n]) * batch.x[n][i] / batch.x.size();
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (gradient_passes(grid, weights[i])) updated[i] = weights[i] - rate * gradient[i];
  return updated;
}

}  // namespace lab09
