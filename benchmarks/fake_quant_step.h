#pragma once

#include <cstdint>
#include <vector>

#include "quantize/affine.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::benchmarks {

/// The work of FakeQuant on an activation in a training step, on a tensor of its own. Forward observes, moves the
/// average, quantizes to 8 bits out of place, and keeps the mask for backward. Backward works in place, as in a step's
/// plan. With a learned range nothing is observed, and backward also sums up the gradients of both ends, from x.
class FakeQuantStep {
 public:
  /// `elements` is rounded down to whole rows of `channels`, 1 of which means per tensor. Throws Error when the first
  /// results differ from the reference loops.
  FakeQuantStep(std::int64_t elements, std::int64_t channels, bool learned = false);

  void forward();
  void backward();
  std::int64_t elements() const { return elements_; }

 private:
  void verify();
  void observe();

  bool learned_;
  std::int64_t elements_;
  std::vector<float> x_, y_, gradient_, min_, max_;
  std::vector<quantize::Range<float>> ranges_;
  std::vector<quantize::Affine<float>> grids_;
  std::vector<std::uint32_t> mask_;
  std::vector<quantize::RangeSums> sums_;
  std::int64_t updates_ = 0;
};

}  // namespace miniqat::benchmarks
