#pragma once

#include <vector>

#include "integer/model.h"
#include "integer/requantization.h"
#include "integer/step.h"

namespace miniqat::integer {

/// The largest integer in every window.
class MaxPoolStep : public Step {
 public:
  MaxPoolStep(const MaxPool& pool, std::int64_t channels) : window_(pool.window), channels_(channels) {}
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  layers::Window2d window_;
  std::int64_t channels_;
};

/// The mean of the pixels in every window.
class AveragePoolStep : public Step {
 public:
  AveragePoolStep(const AveragePool& pool, const TensorInfo& input, const TensorInfo& output, const Clamp& clamp);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  layers::Window2d window_;
  std::int64_t channels_;
  std::int32_t input_zero_point_;
  std::int32_t output_zero_point_;
  Clamp clamp_;
  /// For each number of pixels from 1 on.
  std::vector<RequantizationFactors> factors_;
};

}  // namespace miniqat::integer
