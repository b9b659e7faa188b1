#include "labs/09-calibration-and-training/lab.h"

namespace lab09 {

Values train_step(const Values& weights, const Grid& grid, const Batch& batch, double rate) {
  const double examples = static_cast<double>(batch.x.size());
  Values gradient(weights.size());
  for (std::size_t n = 0; n < batch.x.size(); ++n) {
    double output = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) output += batch.x[n][i] * fake_quantize(grid, weights[i]);
    const double d_output = 2 * (output - batch.target[n]) / examples;
    for (std::size_t i = 0; i < weights.size(); ++i) gradient[i] += d_output * batch.x[n][i];
  }
  Values updated = weights;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (gradient_passes(grid, weights[i])) updated[i] -= rate * gradient[i];
  return updated;
}

}  // namespace lab09
