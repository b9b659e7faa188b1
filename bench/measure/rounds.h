#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace miniqat::bench {

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
Spread spread_of(std::vector<double> values);

/// The values of one competitor as multiples of another one's in the same round: both took turns, so what slows the
/// machine for longer than a round slows both. Of one length. The ratio of seconds base / own is a ratio of speeds.
std::vector<double> ratios_of(const std::vector<double>& values, const std::vector<double>& base);

/// Repetitions on a quiet machine stay within this share; a difference must exceed it.
inline constexpr double kRepeatTolerance = 0.05;

/// How far the median of the later half of the rounds is from that of the earlier half, as a part of it.
double drift_of(const std::vector<double>& rounds);

/// Would a second measurement give the same? Half of the rounds lie within a tenth, and both halves say the same.
bool is_steady(const std::vector<double>& rounds);

/// An interval in which a median lies, as far as that is known.
struct Interval {
  double low = 0;
  double high = 0;
};

/// The confidence of the intervals that tables and files have.
inline constexpr double kConfidence = 0.95;

/// The interval of a median, whatever the distribution that `values` are a sample of: two of the values, symmetric in
/// their order, as close together as a sign test allows that is wrong in at most 1 - confidence of all cases (Conover,
/// Practical Nonparametric Statistics, section 3.2). None for too few values: 0.95 takes six.
std::optional<Interval> median_interval(std::vector<double> values, double confidence);

/// The probability that two samples of one distribution are at least as far apart as these, in either direction: the
/// rank-sum test (Mann and Whitney 1947) with the normal approximation, correction for ties and for continuity. 1 for
/// an empty sample. Five values against five that are all larger give 0.012.
double rank_test(const std::vector<double>& a, const std::vector<double>& b);

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

}  // namespace miniqat::bench
