#pragma once

#include <vector>

#include "integer/kernels/requantization.h"
#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// The largest integer in every window: from [h, w, channels] to [oh, ow, channels], on one grid.
class MaxPoolStep : public Step {
 public:
  /// The window has the extents of both images, and none of its positions lies on padding alone (Model::check()).
  MaxPoolStep(const MaxPool& pool, std::int64_t channels) : window_(pool.window), channels_(channels) {}
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  Window2d window_;
  std::int64_t channels_;
};

/// The mean of the pixels in every window, on the output's grid: from [h, w, c] to [oh, ow, c], or to [c] where there
/// is one window.
class AveragePoolStep : public Step {
 public:
  /// `pool.multipliers` has an element for each number of pixels that a window may see, from 1 on.
  AveragePoolStep(const AveragePool& pool, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  Window2d window_;
  std::int64_t channels_;
  std::int32_t input_zero_point_;
  std::int32_t output_zero_point_;
  Clamp clamp_;
  /// For each number of pixels from 1 on.
  std::vector<RequantizationFactors> factors_;
};

}  // namespace miniqat::integer
