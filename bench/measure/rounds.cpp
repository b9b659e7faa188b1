#include "bench/measure/rounds.h"

#include <cmath>
#include <functional>
#include <numbers>

namespace miniqat::bench {
namespace {

/// The probability that k of n values are below their median.
double probability_below(std::size_t k, std::size_t n) {
  const auto of_k = static_cast<double>(k), of_n = static_cast<double>(n);
  return std::exp(std::lgamma(of_n + 1) - std::lgamma(of_k + 1) - std::lgamma(of_n - of_k + 1) -
                  of_n * std::numbers::ln2);
}

struct Ranked {
  double value = 0;
  bool of_a = false;
};

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return {.median = values[n / 2], .low = values[n / 4], .high = values[n - 1 - n / 4]};
}

std::vector<double> ratios_of(const std::vector<double>& values, const std::vector<double>& base) {
  std::vector<double> ratios(values.size());
  std::ranges::transform(values, base, ratios.begin(), std::divides{});
  return ratios;
}

double drift_of(const std::vector<double>& rounds) {
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  if (middle == rounds.begin()) return 0;
  return std::abs(spread_of({middle, rounds.end()}).median / spread_of({rounds.begin(), middle}).median - 1);
}

bool is_steady(const std::vector<double>& rounds) {
  return !spread_of(rounds).is_wide() && drift_of(rounds) <= kRepeatTolerance;
}

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

double rank_test(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  std::vector<Ranked> all;
  for (const double value : a) all.push_back({value, true});
  for (const double value : b) all.push_back({value, false});
  std::ranges::sort(all, {}, &Ranked::value);
  double rank_sum = 0, ties = 0;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    while (last < all.size() && all[last].value == all[first].value) ++last;
    // Equal values share the mean of their ranks, first + 1 to last.
    const double rank = static_cast<double>(first + 1 + last) / 2, count = static_cast<double>(last - first);
    for (std::size_t i = first; i < last; ++i) rank_sum += all[i].of_a ? rank : 0;
    ties += count * count * count - count;
  }
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size()), n = n_a + n_b;
  const double u = rank_sum - n_a * (n_a + 1) / 2;
  const double variance = n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;
  const double distance = std::max(0.0, std::abs(u - n_a * n_b / 2) - 0.5);
  return std::erfc(distance / std::sqrt(2 * variance));
}

}  // namespace miniqat::bench
