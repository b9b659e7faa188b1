#include "datasets/standard.h"

#include <cmath>
#include <span>

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::datasets {

Standard standard_of(const Tensor& numbers) {
  const std::span<const float> values = numbers.values<float>();
  const auto channels = static_cast<std::size_t>(numbers.shape()[-1]);
  const double rows = static_cast<double>(values.size() / channels);
  // Two passes: the sum of squares would lose the variance of numbers far from 0.
  std::vector<double> means(channels), squares(channels);
  for (std::size_t i = 0; i < values.size(); ++i) means[i % channels] += values[i];
  for (double& mean : means) mean /= rows;
  for (std::size_t i = 0; i < values.size(); ++i) squares[i % channels] += std::pow(values[i] - means[i % channels], 2);
  Standard standard;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto deviation = static_cast<float>(std::sqrt(squares[c] / rows));
    standard.mean.push_back(static_cast<float>(means[c]));
    standard.deviation.push_back(deviation > 0 ? deviation : 1);
  }
  return standard;
}

Tensor standardised(const Tensor& numbers, const Standard& standard) {
  const std::size_t channels = standard.mean.size();
  if (numbers.shape()[-1] != static_cast<std::int64_t>(channels))
    fail("numbers ", numbers.shape(), " are to be standardised with ", counted(channels, "mean"));
  Tensor result = numbers.clone();
  const std::span<float> values = result.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = standard.standardised(i % channels, values[i]);
  return result;
}

}  // namespace miniqat::datasets
