#pragma once

#include <string>

#include "core/engine/profile.h"

namespace miniqat {

/// The rates against which a profile is held.
struct MachineRates {
  int threads = 1;
  /// The speed of a large matrix product in float32; a multiply-add counts as two operations.
  double operations_per_second = 0;
  /// Read and written by a copy in memory.
  double bytes_per_second = 0;
};

/// For people: milliseconds a step for every part, the slowest first, then for every op type and for every phase.
/// Beside them the part's work and how near it is to what the machine allows: the least time over its time, where the
/// least is that of its arithmetic or that of its bytes (PartWork), whichever is longer. Says so when there is nothing
/// to show.
std::string profile_table(const Profile& profile, const MachineRates& rates);

/// The kept steps in Chrome's trace event format, for chrome://tracing or ui.perfetto.dev: complete events ("ph": "X")
/// on one thread, a step around its parts, times in microseconds since the first of them; "cat" is "step" or the phase.
/// Beside them "rates" and, of the profile's steps, "parts": the rows of the first table, all of them, in the order in
/// which they first ran, with milliseconds, GFLOP and MB a step by phase and the least milliseconds of all
/// ("least_ms").
std::string profile_trace(const Profile& profile, const MachineRates& rates);

}  // namespace miniqat
