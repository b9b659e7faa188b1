#include "labs/03-per-tensor-and-per-channel/lab.h"

namespace lab03 {

// Each weight on the grid of its channel; element i belongs to channel i % channels. Check it with ./labs/check 03
std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits) {
  // Your code here. fake_quantize(min, max, bits, x) is lab 2's function.
  return {};
}

}  // namespace lab03
