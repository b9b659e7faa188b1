#pragma once

#include "datasets/data_kind.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// Throws UsageError for the first setting that somebody chose and that means nothing for data of this kind, the
/// settings' data set: it names the data for which it is. Chosen is what is in TrainSettings::given, and what has
/// another value than the usual one, but for settings of a run that exists.
void require_settings_of(datasets::DataKind kind, const TrainSettings& settings);

}  // namespace miniqat::training
