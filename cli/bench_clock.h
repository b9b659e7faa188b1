#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace miniqat::cli {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return seconds_since(start);
}

/// A figure that was measured several times. The middle half of what was measured lies between the quartiles.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;

  /// Too wide to tell one tenth from another.
  bool is_wide() const { return high - low > 0.1 * median; }
};

/// `values` must not be empty.
inline Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return {.median = values[n / 2], .low = values[n / 4], .high = values[n - 1 - n / 4]};
}

/// What became of one of several competitors.
struct Measured {
  Spread seconds;
  /// Its time as a multiple of that of the first one in the same round.
  Spread over_first;
};

/// Calls the competitors 0 .. count-1 in turns, since machines drift: round(k) returns the seconds that k took. At
/// least three rounds, then more until the budget is spent.
template <class Round>
std::vector<Measured> measure_in_turns(std::size_t count, double budget_seconds, const Round& round) {
  constexpr std::size_t kFewest = 3, kMost = 200;
  std::vector<std::vector<double>> times(count);
  const auto start = std::chrono::steady_clock::now();
  while (times[0].size() < kFewest || (times[0].size() < kMost && seconds_since(start) < budget_seconds))
    for (std::size_t k = 0; k < count; ++k) times[k].push_back(round(k));
  std::vector<Measured> results;
  for (const std::vector<double>& one : times) {
    std::vector<double> ratios(one.size());
    std::ranges::transform(one, times[0], ratios.begin(), std::divides{});
    results.push_back({spread_of(one), spread_of(ratios)});
  }
  return results;
}

}  // namespace miniqat::cli
