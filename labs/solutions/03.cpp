#include <algorithm>

#include "labs/03-per-tensor-and-per-channel/lab.h"

namespace lab03 {

std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits) {
  std::vector<float> result(weights.size());
  const std::size_t step = static_cast<std::size_t>(channels);
  for (std::size_t channel = 0; channel < step; ++channel) {
    float min = weights[channel], max = weights[channel];
    for (std::size_t i = channel; i < weights.size(); i += step) {
      min = std::min(min, weights[i]);
      max = std::max(max, weights[i]);
    }
    for (std::size_t i = channel; i < weights.size(); i += step) result[i] = fake_quantize(min, max, bits, weights[i]);
  }
  return result;
}

}  // namespace lab03
