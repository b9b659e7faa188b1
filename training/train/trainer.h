#pragma once

#include "training/run/run_directory.h"
#include "training/run_observer.h"
#include "training/settings/given_settings.h"
#include "training/settings/train_settings.h"
#include "training/train/train_extras.h"

namespace miniqat::training {

/// Trains as `settings` say and keeps the run directory, which is locked, up to date: metrics every few steps, the
/// checkpoint every `settings.save_every`, both and the test accuracy after every epoch and at the end.
/// `settings` must be resolved (resolve()), so that config.json tells what the run did. Throws UsageError for a graph
/// file that is quantized otherwise than a new run's settings ask for, NonFiniteLoss (the last good checkpoint stays)
/// and whatever reading data and writing files throws, with how to go on.
void train(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras, RunObserver& observer);

}  // namespace miniqat::training
