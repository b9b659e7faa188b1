// The hint must say: You take channels for blocks
#include <algorithm>
#include <cmath>

#include "labs/03-per-tensor-and-per-channel/lab.h"

namespace lab03 {

std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits) {
  std::vector<float> result;
  const auto block = static_cast<std::ptrdiff_t>(weights.size()) / channels;
  for (auto begin = weights.begin(); begin != weights.end(); begin += block) {
    const auto [min, max] = std::minmax_element(begin, begin + block);
    for (auto weight = begin; weight != begin + block; ++weight)
      result.push_back(fake_quantize(*min, *max, bits, *weight));
  }
  return result;
}

}  // namespace lab03
