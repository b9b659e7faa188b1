#pragma once

namespace miniqat::training {

/// The help of every --threads.
inline constexpr const char* kThreadsHelp =
    "at most 1024; 0: OMP_NUM_THREADS if it is set, else all cores, or as many as a cgroup quota allows";

}  // namespace miniqat::training
