#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/run_directory.h"
#include "cli/train_settings.h"

namespace miniqat::cli {

struct TrainExtras {
  /// Continue the run's checkpoint.
  bool resume = false;
  /// End after this step as an interrupt would: checkpoint written, ready for --resume.
  std::optional<std::int64_t> stop_at;
  /// Steps between two lines of metrics.jsonl.
  std::int64_t log_every = 50;
  bool verbose = false;
  /// Where the trace of the profile goes; "" is the run directory's trace.json. None: nothing is timed.
  std::optional<std::string> profile;
};

/// Trains as `settings` say and keeps the run directory up to date: metrics every few steps, the checkpoint and the
/// test accuracy after every epoch and at the end. `settings.threads` must be resolved.
/// Throws NonFiniteLoss (the last good checkpoint stays) and whatever reading data and writing files throws.
void train(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras);

}  // namespace miniqat::cli
