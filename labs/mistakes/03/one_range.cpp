// The hint must say: one range for all channels
#include <algorithm>
#include <cmath>

#include "labs/03-per-tensor-and-per-channel/lab.h"

namespace lab03 {

std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits) {
  const auto [min, max] = std::ranges::minmax(weights);
  std::vector<float> result;
  for (const float weight : weights) result.push_back(fake_quantize(min, max, bits, weight));
  return result;
}

}  // namespace lab03
