// The hint must say: You multiply by sigma
#include <cmath>

#include "labs/08-batch-norm-folding/lab.h"

namespace lab08 {

Layer fold(const Layer& layer, const BatchNorm& norm) {
  const std::size_t channels = norm.gamma.size();
  Layer folded = layer;
  for (std::size_t c = 0; c < channels; ++c) {
    const double sigma = std::sqrt(norm.variance[c] + norm.epsilon);
    const double factor = norm.gamma[c] * sigma;
    for (std::size_t i = c; i < layer.weights.size(); i += channels) folded.weights[i] *= factor;
    folded.bias[c] = (layer.bias[c] - norm.mean[c]) * factor + norm.beta[c];
  }
  return folded;
}

}  // namespace lab08
