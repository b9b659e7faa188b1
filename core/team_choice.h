#pragma once

namespace miniqat {

/// MINIQAT_TEAM, for comparisons: "own", the default; "openmp" runs oneDNN's regions and our own in OpenMP's threads;
/// "alone" computes all independent parts (core/team.h) in the calling thread. Throws Error for any other value.
enum class TeamChoice { kOwn, kOpenMp, kAlone };
TeamChoice team_choice();

}  // namespace miniqat
