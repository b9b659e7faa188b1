#pragma once

#include "cli/flags/setting_flags.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {

/// Overwrites the settings whose flags are on the command line; --epochs replaces the steps of a config.json. Throws
/// UsageError that names both for a flag that would have no effect beside another one or beside what the settings say
/// already.
void apply_flags(const SettingFlags<training::TrainSettings>& flags, training::TrainSettings& settings);

}  // namespace miniqat::cli
