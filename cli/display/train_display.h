#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "cli/display/progress_line.h"
#include "cli/display/step_lines.h"
#include "quantize/quantizers.h"
#include "training/run_observer.h"

namespace miniqat::cli {

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
