#pragma once

namespace miniqat {

/// The function for one part of a region.
using TeamBody = void (*)(void* data, int part);

/// Calls body(data, part) once for each part in [0, parts), on the calling thread and its workers, and returns when all
/// have ended. Each thread that calls this has workers of its own; they stay until it ends, start with its floating
/// point switches, and sleep if nothing comes within some tens of microseconds.
///
/// A part belongs to no thread: the calling thread and each worker begin with their own (so that the same numbers meet
/// the same cache), then take over those that nobody has begun. So a thread that gets no core, since other programs use
/// them, keeps nobody waiting unless it had begun. The result of a part does not depend on its thread.
///
/// At most one part runs in a thread at a time, and there are as many threads as parts. So parts may wait for one
/// another (team_barrier(), or barriers of their own): a waiting thread leaves the parts that are not begun to the
/// others.
///
/// Throws what a part has thrown, that of the lowest part, after all have ended; Error if no thread can be started. Not
/// to be called where in_team().
void run_in_team(int parts, TeamBody body, void* data);

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

/// How long the calling thread has waited, in all its regions, for parts whose threads had no core meanwhile, at
/// barriers and at the ends (waits within the time that it spins are not counted, nor those of oneDNN's own loops,
/// which spin). Measured with the CPU clocks of its workers.
double seconds_without_cores();

/// Whether oneDNN's regions and our own run in OpenMP's threads, as MINIQAT_TEAM=openmp wants: for comparisons. Throws
/// Error for any value of it but "own" and "openmp".
bool runs_in_openmp();

}  // namespace miniqat
