#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace miniqat::cli {

/// Chooses the steps of a training that get a line where there is no terminal: the quarters of each epoch, at least a
/// second apart, and the last step. So a short run has few lines, and a long one four an epoch.
class StepLines {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Whether this step, from 1 on, gets a line at `now`; it then counts as printed.
  bool is_due(std::int64_t step, std::int64_t total, std::int64_t steps_per_epoch, Time now);

 private:
  std::optional<Time> last_;
};

}  // namespace miniqat::cli
