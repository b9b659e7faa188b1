// The hint must say: Your epsilon
#include <cmath>

#include "labs/08-batch-norm-folding/lab.h"

namespace lab08 {

Layer fold(const Layer& layer, const BatchNorm& norm) {
  const std::size_t channels = norm.gamma.size();
  const std::size_t inputs = layer.weights.size() / channels;
  Layer folded = layer;
  for (std::size_t i = 0; i < channels * inputs; ++i) {
    const std::size_t c = i % channels;
    folded.weights[i] *= norm.gamma[c] / (std::sqrt(norm.variance[c]) + norm.epsilon);
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const double factor = norm.gamma[c] / (std::sqrt(norm.variance[c]) + norm.epsilon);
    folded.bias[c] = (layer.bias[c] - norm.mean[c]) * factor + norm.beta[c];
  }
  return folded;
}

}  // namespace lab08
