#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace miniqat::training {

/// The interval between checkpoints of a run, in steps ("500") or seconds ("60s").
class SaveInterval {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws UsageError for any other text.
  explicit SaveInterval(const std::string& text);

  /// Whether a checkpoint is due after `step`, when the last one was of `saved_step` and taken at `saved`.
  bool is_due(std::int64_t step, std::int64_t saved_step, Clock::time_point saved) const;

 private:
  /// One of `steps_` and `seconds_` is 0.
  std::int64_t steps_ = 0;
  std::chrono::duration<double> seconds_{0};
};

}  // namespace miniqat::training
