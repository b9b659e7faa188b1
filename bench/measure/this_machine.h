#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::bench {

/// A cache for data.
struct Cache {
  int level = 1;
  std::int64_t bytes = 0;
};

/// The first core's data caches, smallest first, as Linux describes them in `folder`; else as the C library knows them.
std::vector<Cache> data_caches(const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

/// The conditions of a measurement beside the command line.
struct Machine {
  std::string cpu;
  int cores = 0;
  /// The cores that the cgroups allow (core/threads/cpu_quota.h).
  std::optional<double> cpu_quota;
  /// The name of isa_level().
  std::string instruction_set;
  std::string onednn;
  int threads = 0;
  /// Caches of one core or of several together; smallest first.
  std::vector<Cache> caches;
  /// 0 where the system does not say.
  std::int64_t memory_bytes = 0;
  /// Processes that ran or wanted to, the mean of the last minute; negative where the system does not say.
  double load = -1;

  /// Others want the cores, too, or somebody just did.
  bool quiet() const { return load <= 0.5; }
  std::int64_t last_cache_bytes() const { return caches.empty() ? 0 : caches.back().bytes; }
  std::string text() const;
  nlohmann::ordered_json json() const;
};

/// "48 KiB", "320 MiB".
std::string bytes_text(std::int64_t bytes);

Machine this_machine();

/// `git describe --always --dirty` of the sources when they were built: "907277a-dirty". Empty outside of git.
std::string_view commit_of_build();

/// The beginning of every JSON file of `bench`: "version" of miniqat, "commit", "date" (UTC), "compiler"
/// with its "flags".
nlohmann::ordered_json build_json();

/// "0.1 (907277a)"; without a commit, "0.1".
std::string version_text(const std::string& version, const std::string& commit);

/// "miniqat 0.1 (907277a), 2026-11-24T08:00:00Z, g++ 12.2.0", a line.
std::string build_text();

/// Other load of the machine during a measurement.
struct Disturbance {
  double seconds = 0;
  /// Cores that others were using, the hypervisor's other guests too, on average; negative where the system does not
  /// say.
  double others = -1;
  /// Cores of the machine beyond the threads in use.
  int idle_cores = 0;
  /// How often a second this process had to leave a core that it wanted to keep.
  double switches = 0;
  /// memcpy's drift from the earlier to the later half of its rounds.
  double drift = 0;

  /// Why the figures may not repeat: "others used 0.8 cores"; empty on a quiet machine.
  std::vector<std::string> reasons() const;
  nlohmann::ordered_json json() const;
};

/// Looks at the machine from its construction on. What this process and its children do that have ended is not a
/// disturbance.
class QuietWatch {
 public:
  QuietWatch();
  Disturbance since() const;

 private:
  struct Sample {
    std::chrono::steady_clock::time_point time;
    /// Seconds of all cores together; negative where unknown.
    double busy = -1;
    double own = 0;
    long switches = 0;
  };
  static Sample sample();

  Sample start_;
};

}  // namespace miniqat::bench
