#pragma once

#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// Where make_classifier() finds the network that a run's settings ask for, in slices of a batch.
ClassifierOptions classifier_options(const TrainSettings& settings);

/// The data that a run's settings ask for, with its validation part. A model file is held against the pictures before
/// they are read. Throws Error for what does not fit, UsageError for an impossible validation part, and what
/// datasets::load() throws.
datasets::Splits load_wanted_data(const TrainSettings& settings);

}  // namespace miniqat::training
