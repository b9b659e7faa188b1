#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/suite/measure/rounds.h"
#include "benchmarks/suite/results/bench_file.h"

namespace miniqat::benchmarks {

enum class Verdict {
  kFaster,
  kSlower,
  /// Nothing that another run of the same thing might not show.
  kNoise,
  /// On the same kind of CPU, memcpy's speed on as many elements changed alike: so did the memory, not the kernel.
  kAsMemcpy,
  /// The rounds of one side were not steady, or its machine not quiet: no word on this row.
  kNotQuiet,
  /// One side has fewer than kFewestCompared rounds: no word on this row.
  kTooFewRounds,
};

/// "faster", "slower", "noise", "as memcpy", "not quiet", "too few rounds".
std::string_view name_of(Verdict verdict);

/// The probability below which ranks count as different.
inline constexpr double kRankLevel = 0.02;

/// With fewer rounds on a side, a few disturbed ones decide.
inline constexpr std::size_t kFewestCompared = 5;

/// One case, measured twice. Seconds.
struct ComparedCase {
  std::string what;
  std::string by_a, by_b;
  Spread a, b;
  /// The speed of b as a multiple of a's: seconds of a over those of b.
  double speed = 1;
  double probability = 1;
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

/// Matches cases of the same text, kernels of the same name first. What is then left of a case is matched whatever the
/// names are, if it is one on each side: so two files with one kernel each compare these kernels.
BenchComparison compare(const BenchFile& a, const BenchFile& b);

}  // namespace miniqat::benchmarks
