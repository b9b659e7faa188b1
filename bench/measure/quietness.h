#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace miniqat::bench {

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
