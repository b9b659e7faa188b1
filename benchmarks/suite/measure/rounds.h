#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace miniqat::benchmarks {

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

/// The values of one competitor as multiples of another one's in the same round.
inline Spread ratio_of(const std::vector<double>& values, const std::vector<double>& base) {
  std::vector<double> ratios(values.size());
  std::ranges::transform(values, base, ratios.begin(), std::divides{});
  return spread_of(ratios);
}

/// Repetitions on a quiet machine stay within this share; a difference must exceed it.
inline constexpr double kRepeatTolerance = 0.05;

/// How far the median of the later half of the rounds is from that of the earlier half, as a part of it.
inline double drift_of(const std::vector<double>& rounds) {
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  if (middle == rounds.begin()) return 0;
  return std::abs(spread_of({middle, rounds.end()}).median / spread_of({rounds.begin(), middle}).median - 1);
}

/// Would a second measurement give the same? Half of the rounds lie within a tenth, and both halves say the same.
inline bool is_steady(const std::vector<double>& rounds) {
  return !spread_of(rounds).is_wide() && drift_of(rounds) <= kRepeatTolerance;
}

/// How long to measure.
struct Patience {
  /// For all competitors together.
  double seconds = 1;
  /// The time may stretch to so many times that while one of them is not steady.
  double longest_stretch = 2;
};

/// Calls the competitors 0 .. count-1 in turns, since machines drift: round(k) returns the seconds that k took. At
/// least three rounds, then more until the time is spent; again more, up to a bound, while one is not steady. Returns
/// the rounds of each.
template <class Round>
std::vector<std::vector<double>> measure_in_turns(std::size_t count, const Patience& patience, const Round& round) {
  constexpr std::size_t kFewest = 3, kMost = 200;
  std::vector<std::vector<double>> times(count);
  const auto start = std::chrono::steady_clock::now();
  const auto wants_more = [&] {
    const std::size_t rounds = times[0].size();
    if (rounds < kFewest) return true;
    const double spent = seconds_since(start);
    if (spent < patience.seconds && rounds < kMost) return true;
    const auto most = static_cast<std::size_t>(patience.longest_stretch * kMost);
    return spent < patience.longest_stretch * patience.seconds && rounds < most &&
           !std::ranges::all_of(times, is_steady);
  };
  while (wants_more())
    for (std::size_t k = 0; k < count; ++k) times[k].push_back(round(k));
  return times;
}

}  // namespace miniqat::benchmarks
