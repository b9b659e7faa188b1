// The hint must say: begin at 0
#include <algorithm>
#include <cmath>

#include "labs/03-per-tensor-and-per-channel/lab.h"

namespace lab03 {

std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits) {
  std::vector<float> max(channels), result;
  for (std::size_t i = 0; i < weights.size(); ++i) max[i % channels] = std::max(max[i % channels], weights[i]);
  for (std::size_t i = 0; i < weights.size(); ++i)
    result.push_back(fake_quantize(0, max[i % channels], bits, weights[i]));
  return result;
}

}  // namespace lab03
