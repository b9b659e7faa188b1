#pragma once

#include <span>
#include <vector>

#include "core/tensors/tensor.h"

namespace miniqat::datasets {

/// A mean and a deviation for each channel (the last axis): numbers are standardised as (number - mean) / deviation, so
/// that a channel has mean 0 and variance 1 in the training part.
struct Standard {
  std::vector<float> mean;
  std::vector<float> deviation;

  /// `number` of a channel in the units of the data.
  double restored(std::size_t channel, double number) const { return number * deviation[channel] + mean[channel]; }

  bool operator==(const Standard&) const = default;
};

/// The means and deviations of `numbers`, [n, ..., channels] float32, over all but the last axis. A channel whose
/// numbers are all equal gets the deviation 1.
Standard standard_of(const Tensor& numbers);

/// A copy of `numbers` that is standardised. Throws Error for another number of channels.
Tensor standardised(const Tensor& numbers, const Standard& standard);

}  // namespace miniqat::datasets
