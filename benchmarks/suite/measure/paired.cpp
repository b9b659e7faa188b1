#include "benchmarks/suite/measure/paired.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>

namespace miniqat::benchmarks {
namespace {

/// The probability that k of n values are below their median.
double probability_below(std::size_t k, std::size_t n) {
  const auto of_k = static_cast<double>(k), of_n = static_cast<double>(n);
  return std::exp(std::lgamma(of_n + 1) - std::lgamma(of_k + 1) - std::lgamma(of_n - of_k + 1) -
                  of_n * std::numbers::ln2);
}

}  // namespace

std::optional<Interval> median_interval(std::vector<double> values, double confidence) {
  const std::size_t n = values.size();
  std::ranges::sort(values);
  std::optional<Interval> result;
  double outside = 0;
  for (std::size_t k = 0; 2 * k < n; ++k) {
    outside += 2 * probability_below(k, n);
    if (outside > 1 - confidence) break;
    result = {values[k], values[n - 1 - k]};
  }
  return result;
}

std::vector<double> paired_speeds(const std::vector<double>& base, const std::vector<double>& rounds) {
  std::vector<double> speeds(rounds.size());
  std::ranges::transform(base, rounds, speeds.begin(), std::divides{});
  return speeds;
}

}  // namespace miniqat::benchmarks
