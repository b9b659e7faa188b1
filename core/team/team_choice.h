#pragma once

namespace miniqat {

/// Whose threads compute the parts of a region. The bits are the same.
enum class TeamChoice {
  /// The threads of a team (run_in_team()).
  kOwn,
  /// OpenMP's threads, with the settings of the program around us.
  kOpenMp,
  /// The calling thread alone, where parts are independent.
  kAlone,
};
/// MINIQAT_TEAM, for comparisons: "own", "openmp" or "alone". Unset: "own" in a program that sends oneDNN's regions to
/// the team (openmp_calls.cpp), since two sets of threads would take the cores from one another; "openmp" in any other.
/// Throws Error for any other value.
TeamChoice team_choice();
/// Said by openmp_calls.cpp before main(), or when Python loads it, if oneDNN calls its functions.
void expect_regions_of_onednn();

}  // namespace miniqat
