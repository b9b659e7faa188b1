#pragma once

// The door of this folder: nothing else of it is included from outside (tests/house_test.cpp).

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

/// The function for one part of a region.
using TeamBody = void (*)(void* data, int part);

/// Whether the parts of a region may wait for one another (team_barrier(), or barriers of their own).
enum class TeamParts { kMayWait, kIndependent };

/// Calls body(data, part) once for each part in [0, parts), on the calling thread and its workers, and returns when all
/// have ended. Each thread that calls this has workers of its own; they stay until it ends, start with its floating
/// point switches, and sleep if nothing comes within some tens of microseconds.
///
/// A part belongs to no thread: the calling thread and each worker begin with their own (so that the same numbers meet
/// the same cache), then take over those that nobody has begun. So a thread that gets no core, since other programs use
/// them, keeps nobody waiting unless it had begun. The result of a part does not depend on its thread.
///
/// At most one part runs in a thread at a time, and there are as many threads as parts. So parts may wait for one
/// another: a waiting thread leaves the parts that are not begun to the others.
///
/// While other programs keep the workers from their cores (core/team/team_load.h), the calling thread computes
/// independent parts alone, in ascending order. Parts said to be independent that wait all the same are only slow then.
///
/// Throws what a part has thrown, that of the lowest part, after all have ended; Error if no thread can be started. Not
/// to be called where in_team().
void run_in_team(int parts, TeamBody body, void* data, TeamParts kind = TeamParts::kMayWait);

/// The part of a region that the calling thread computes; part 0 of 1 outside.
struct TeamPlace {
  int part = 0;
  int parts = 1;
};
bool in_team();
TeamPlace team_place();
/// Waits until every part of the region has got here. Outside of regions it returns at once.
void team_barrier();

/// While one lives, the calling thread computes part 0 of 1, whatever it did before: a region within a part.
class NestedRegion {
 public:
  NestedRegion();
  ~NestedRegion();
  NestedRegion(const NestedRegion&) = delete;
  NestedRegion& operator=(const NestedRegion&) = delete;

 private:
  TeamPlace before_;
};

/// While one lives, the parts of the regions that oneDNN starts in this thread are independent.
class IndependentRegions {
 public:
  IndependentRegions();
  ~IndependentRegions();
  IndependentRegions(const IndependentRegions&) = delete;
  IndependentRegions& operator=(const IndependentRegions&) = delete;

 private:
  TeamParts before_;
};
TeamParts parts_of_onednn();

/// How long the workers of the calling thread have gone without cores: it waited for their parts meanwhile, at barriers
/// and at the ends of regions, or computed alone because of that. Waits within the time that it spins are not counted,
/// nor those of oneDNN's own loops, which spin. Measured with the CPU clocks of the workers.
double seconds_without_cores();
/// The calling thread asks its workers again, as if none had ever lost its core: before a measurement.
void forget_lost_cores();

}  // namespace miniqat
