// The hint must say: reaches from -m to m
#include <algorithm>
#include <cmath>

#include "labs/03-per-tensor-and-per-channel/lab.h"

namespace lab03 {

std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits) {
  std::vector<float> most(channels), result;
  for (std::size_t i = 0; i < weights.size(); ++i)
    most[i % channels] = std::max(most[i % channels], std::abs(weights[i]));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float end = most[i % channels];
    result.push_back(fake_quantize(-end, end, bits, weights[i]));
  }
  return result;
}

}  // namespace lab03
