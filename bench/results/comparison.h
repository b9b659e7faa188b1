#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/rounds.h"
#include "bench/results/result_file.h"

namespace miniqat::bench {

enum class Verdict {
  kFaster,
  kSlower,
  /// Nothing that another run of the same thing might not show.
  kNoise,
  /// On the same kind of CPU, memcpy's speed on as many elements changed alike: so did the memory, not the kernel.
  kAsMemcpy,
  /// The rounds of one side were not steady, or its machine not quiet: no word on this row.
  kNotQuiet,
  /// One side has fewer than kFewestCompared rounds, or there are too few turns for an interval: no word on this row.
  kTooFewRounds,
  /// The interval of a row that took turns has both, ratios that are noise and others.
  kOpen,
};

/// "faster", "slower", "noise", "as memcpy", "not quiet", "too few rounds", "open".
std::string_view name_of(Verdict verdict);

/// The probability below which ranks count as different.
inline constexpr double kRankLevel = 0.02;

/// With fewer rounds on a side, a few disturbed ones decide.
inline constexpr std::size_t kFewestCompared = 5;

/// One case, measured twice, or more often in turns. Seconds.
struct ComparedCase {
  std::string what;
  std::string by_a, by_b;
  Spread a, b;
  /// The speed of b as a multiple of a's: seconds of a over those of b; of sides that took turns the median of all
  /// turns.
  double speed = 1;
  /// The probability of the rank test; 1 for sides that took turns.
  double probability = 1;
  /// How often the sides took turns, and in which interval the median of the turns' ratios lies (kConfidence); 0 and
  /// none where they did not.
  std::size_t turns = 0;
  std::optional<Interval> interval = {};
  Verdict verdict = Verdict::kNoise;
  /// BenchRecord::keys.
  nlohmann::ordered_json keys = {};
};

struct BenchComparison {
  std::vector<ComparedCase> cases;
  /// "what by whom" of those without a partner.
  std::vector<std::string> only_a, only_b;

  std::int64_t count(Verdict verdict) const;
  nlohmann::ordered_json json() const;
};

/// There is a word on rows that both were quiet and have kFewestCompared rounds. A difference is then beyond noise
/// under three conditions: the medians differ by more than kRepeatTolerance; the ranges between the quartiles do not
/// touch; a rank test of all rounds gives less than kRankLevel. compare() asks for one thing more: kAsMemcpy.
Verdict verdict_of(const BenchRecord& a, const BenchRecord& b);

/// What the interval of a ratio of speeds says: kFaster or kSlower if all of it is more than kRepeatTolerance away from
/// 1, kNoise if all of it is nearer, else kOpen. Without one, kTooFewRounds.
Verdict verdict_of_ratio(const std::optional<Interval>& speed);

/// Matches cases of the same text, kernels of the same name first. What is then left of a case is matched whatever the
/// names are, if it is one on each side: so two files with one kernel each compare these kernels.
BenchComparison compare(const BenchFile& a, const BenchFile& b);

/// Every two kernels of one case, by the ratios of their rounds: they took turns, so what slows the machine slows both.
BenchComparison compare_kernels(const BenchFile& file);

/// The cases of several pairs of files, written in turns: each pair gives one ratio of medians, and whatever changes
/// the machine from file to file is in the spread of these. Cases match as by compare() of each pair; one that lacks a
/// case gives no ratio of it. The lists are of one length, at least 1.
BenchComparison compare_turns(const std::vector<BenchFile>& a, const std::vector<BenchFile>& b);

}  // namespace miniqat::bench
