#pragma once

#include <cstdint>
#include <string>

namespace miniqat::fuzz {

/// The command line.
struct Arguments {
  std::uint64_t seed = 0;
  std::int64_t cases = 0;
  double seconds = 0;
  std::string stage = "all";
  std::string isa = "all";
  std::string replay;
  std::string out = "differential-findings";
  std::int64_t first = 0;
  int keep_going = 1;
  /// Seconds for a finding.
  double shrink = 60;
  /// Percent; negative: any share.
  double most_vague = -1;
  /// Set for the process that runs cases: where it says which one it is at.
  std::string progress;
};

}  // namespace miniqat::fuzz
