#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "training/run/run_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

/// The flag of a command that takes a data set besides the run's own.
inline void add_skip_broken(Command& command, bool& skip_broken) {
  command.flag("--skip-broken", skip_broken,
               "with --dataset: leave out pictures that cannot be read, instead of ending with an error");
}

/// Throws UsageError for the flag without --dataset.
inline void require_dataset_for(bool skip_broken, const std::string& dataset) {
  if (skip_broken && dataset.empty())
    throw training::UsageError("--skip-broken goes with --dataset: a run reads its own data as it was trained");
}

/// The run, which reads the data set as the flag says.
inline training::RunSource with_skip_broken(training::RunSource run, bool skip_broken, const std::string& dataset) {
  require_dataset_for(skip_broken, dataset);
  run.settings.skip_broken = run.settings.skip_broken || skip_broken;
  return run;
}

}  // namespace miniqat::cli
