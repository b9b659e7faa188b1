#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
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

/// The upper one of the two in the middle. `values` must not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Calls the competitors 0 .. count-1 in turns, since machines drift: round(k) returns the seconds that k took. At
/// least three rounds, then more until the budget is spent. Returns each one's median.
template <class Round>
std::vector<double> medians_in_turns(std::size_t count, double budget_seconds, const Round& round) {
  constexpr std::size_t kFewest = 3, kMost = 200;
  std::vector<std::vector<double>> times(count);
  const auto start = std::chrono::steady_clock::now();
  while (times[0].size() < kFewest || (times[0].size() < kMost && seconds_since(start) < budget_seconds))
    for (std::size_t k = 0; k < count; ++k) times[k].push_back(round(k));
  std::vector<double> medians;
  for (const std::vector<double>& one : times) medians.push_back(median(one));
  return medians;
}

}  // namespace miniqat::cli
