#pragma once

#include "datasets/dataset.h"
#include "training/run/run_directory.h"
#include "training/run_observer.h"

namespace miniqat::training {

/// Tells of what the readers of the data left out or changed.
void warn_of_files(const datasets::Splits& data, RunObserver& observer);

/// Writes the run's skipped_files.json, [{"file": "train/cat/7.png", "why": "..."}, ...]: the broken files that
/// TrainSettings::skip_broken left out. Nothing where there are none.
void write_skipped_files(const datasets::Splits& data, const RunDirectory& run);

}  // namespace miniqat::training
