#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "cli/display/terminal.h"
#include "quantize/quantizers.h"
#include "training/run_observer.h"

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

/// How a training gets on, in a line of at most `columns` columns: a bar, steps, epoch, loss, speed and the time left.
/// Where there is less room the bar is shorter; then the speed goes, the epoch, the bar, and the loss. Steps and the
/// time left are never cut.
std::string progress_text(const training::StepReport& report, std::size_t columns, const std::string& noun = "image");

/// The terminal of a command that looks at batches: `calibrate`, `reestimate`. A signal stops it.
class BatchDisplay : public training::RunObserver {
 public:
  void say(const std::string& text) override;
  void warn(const std::string& text) override;
  /// Four lines at most where there is no terminal.
  void on_batch(std::int64_t done, std::int64_t total) override;
  bool wants_to_stop() override;

 private:
  ProgressLine line_{stdout};
};

/// The output of `miniqat train`: a description of the run, then its progress, as a bar on a terminal and as a line now
/// and then elsewhere. Ctrl-C ends the run; that needs an InterruptGuard.
class TrainDisplay : public training::RunObserver {
 public:
  /// `verbose` adds the rewrite's report and the memory of each plan.
  explicit TrainDisplay(bool verbose) : verbose_(verbose) {}

  void on_begin(const training::TrainingTask& task, const training::RunDirectory& run) override;
  void on_step(const training::StepReport& report) override;
  void say(const std::string& text) override;
  void warn(const std::string& text) override;
  bool wants_to_stop() override;

 private:
  using Clock = std::chrono::steady_clock;

  void show_step(const training::StepReport& report);
  /// What a second has so many of.
  const char* noun() const;
  void describe_plan(std::int64_t step);
  std::string phase_text(const quantize::PassedDelays& passed) const;

  const bool verbose_;
  const training::TrainingTask* task_ = nullptr;
  ProgressLine bar_{stdout};
  StepLines lines_;
  std::set<std::string> noted_;
  Clock::time_point drawn_{};
  /// The delays that had passed in the plan that was described last.
  std::optional<quantize::PassedDelays> described_;
};

}  // namespace miniqat::cli
