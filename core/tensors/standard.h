#pragma once

#include <cstddef>
#include <vector>

namespace miniqat {

/// A mean and a deviation for each channel (the last axis): numbers are standardised as (number - mean) / deviation, so
/// that a channel has mean 0 and variance 1 in the training part.
struct Standard {
  std::vector<float> mean;
  std::vector<float> deviation;

  float standardised(std::size_t channel, float number) const { return (number - mean[channel]) / deviation[channel]; }
  /// `number` of a channel in the units of the data.
  double restored(std::size_t channel, double number) const { return number * deviation[channel] + mean[channel]; }

  bool operator==(const Standard&) const = default;
};

}  // namespace miniqat
