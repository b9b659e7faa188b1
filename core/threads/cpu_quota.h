#pragma once

#include <filesystem>
#include <optional>

namespace miniqat {

/// The cores' time that this process's cgroups allow it, in cores (1.5: three cores half of the time): the least of its
/// own group and all groups around it. Versions 1 (cpu.cfs_quota_us over cpu.cfs_period_us) and 2 (cpu.max). None
/// without a limit, and where the files cannot be read. `root` is what all paths begin with.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// The number of threads that use all of a quota: rounded up, at least 1. Without a quota, the largest int.
int cores_of_quota(std::optional<double> quota);

}  // namespace miniqat
