#pragma once

#include <cstdint>

#include "benchmarks/limit_onednn.h"

namespace miniqat::limit {

// The loops that oneDNN has no primitive for, one pass over their data each, shared between OpenMP's threads.

/// Which elements let the gradient pass, a bit each: bit j of word l of a block is element 16 * j + l.
class Mask {
 public:
  Mask() = default;
  /// Of as many elements as `values` has.
  explicit Mask(const Buffer& values) : words_(values.blocks() * kWordsOfBlock) {}

  static constexpr std::int64_t kWordsOfBlock = 16;
  /// To be looked at as vectors of kWordsOfBlock words only.
  void* data() const { return words_.data(); }

 private:
  Buffer words_;
};

/// A FakeQuant of its own: x clamped to a grid of 2^bits integers that holds 0.
struct Quantizer {
  int bits = 8;
  /// Weights: integers from 1, and the range is this step's. Otherwise a zero-debiased moving average of the batches'.
  bool narrow_range = false;
  bool moving_average = true;
  double decay = 0.999;

  /// Observes x and moves the grid.
  void observe(const Buffer& x);

  float scale = 1, zero_point = 0, quant_min = 0, quant_max = 0, low = 0, high = 0;

 private:
  double biased_min_ = 0, biased_max_ = 0, unseen_ = 1;
};

/// y = x on the grid; y may be x. The mask has a 1 where x was not clamped and, `after_relu`, is not 0 either.
void quantize(const Quantizer& quantizer, bool after_relu, const Buffer& x, const Buffer& y, const Mask& mask);
/// d = 0 where the mask has a 0.
void apply_mask(const Mask& mask, const Buffer& d);
/// d = 0 where y, which a relu wrote, is 0.
void apply_relu_gradient(const Buffer& y, const Buffer& d);
/// y = 2 y or 0, half of the time each, as a hash of `key` and the place says. The same for its gradient.
void drop_half(std::uint32_t key, const Buffer& y);

struct Descent {
  float rate = 0;
  float momentum = 0;
  float weight_decay = 0;
};
/// g' = (g where the mask lets it pass, all of it without one) + weight_decay w; v = momentum v + g'; w -= rate v.
void descend(const Descent& descent, const Mask* mask, const Buffer& w, const Buffer& v, const Buffer& g);

/// Mean of the losses of [batch, classes] logits, and its gradient.
float softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                            float* d_logits);

}  // namespace miniqat::limit
