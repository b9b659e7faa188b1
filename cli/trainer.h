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
  /// With `resume`: the settings in the run's config.json, of which those asked for now may differ where no step is
  /// computed otherwise, and in a greater length.
  TrainSettings begun = {};
  bool verbose = false;
  /// Where the trace of the profile goes; "" is the run directory's trace.json. None: nothing is timed.
  std::optional<std::string> profile;
};

/// Trains as `settings` say and keeps the run directory, which is locked, up to date: metrics every few steps, the
/// checkpoint every --save-every, both and the test accuracy after every epoch and at the end. `settings.threads` must
/// be resolved. Needs an InterruptGuard: after a signal the checkpoint is written, then Interrupted thrown.
/// Throws NonFiniteLoss (the last good checkpoint stays) and whatever reading data and writing files throws, with how
/// to go on.
void train(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras);

}  // namespace miniqat::cli
