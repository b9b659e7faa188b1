#pragma once

#include "core/engine/profile_report.h"

namespace miniqat::benchmarks {

/// With thread_count() threads: oneDNN's matrix product of two [1024, 1024], and a copy of 128 MiB, the best of some
/// rounds each. Takes half a second and 256 MiB.
MachineRates measure_rates();

}  // namespace miniqat::benchmarks
