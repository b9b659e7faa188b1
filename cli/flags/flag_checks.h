#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/flags/setting_flags.h"
#include "core/text/error.h"
#include "quantize/range_kind.h"
#include "training/calibrate/calibration.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

/// The file that `flag` names: throws UsageError if it ends as one of another kind. `endings` are the first and others
/// that will do; none at all, as in /dev/stdout, will do, too.
void require_ending(const std::string& flag, const std::filesystem::path& file,
                    const std::vector<std::string>& endings);

/// Refuses symmetry flags of a rewrite that are ignored beside the options that flags and a config.json gave.
/// `width_flag`: where the narrowest weights have their bits from.
template <class Flags, class Options>
void refuse_ignored_symmetry(const Flags& flags, const Options& options,
                             const std::string& width_flag = "--weight-bits") {
  if (options.symmetric && flags.was_given("symmetric_weights"))
    training::refuse_ignored("--symmetric-weights", "--symmetric, which includes the weights");
  if (!flags.was_given("asymmetric_weights") || !options.asymmetric_weights) return;
  if (options.symmetric || options.symmetric_weights)
    training::refuse_ignored("--asymmetric-weights", options.symmetric ? "--symmetric" : "--symmetric-weights");
  if (traits_of(options.weight_range()).learned || !options.bits_config.empty()) return;
  const std::string ranges = concat("--ranges ", names_of(options.ranges)[static_cast<std::size_t>(options.ranges)]);
  training::refuse_ignored("--asymmetric-weights", options.ranges == quantize::RangeChoice::kAuto
                                                       ? concat(ranges, " ", width_flag, " ", options.weight_bits,
                                                                ", whose weights are observed and asymmetric")
                                                       : concat(ranges, ", whose weights are asymmetric"));
}

/// Throws UsageError for settings of a calibration that are out of range or without effect.
template <class Flags>
void check_calibration(const Flags& flags, const training::CalibrateSettings& settings) {
  using training::UsageError;
  training::check(settings);
  if (flags.was_given("percentile") && settings.method != quantize::CalibrationMethod::kPercentile)
    throw UsageError("--percentile goes with --method percentile");
}

/// Overwrites the settings whose flags are on the command line; --epochs replaces the steps of a config.json. Throws
/// UsageError that names both for a flag that would have no effect beside another one or beside what the settings say
/// already.
void apply_flags(const SettingFlags<training::TrainSettings>& flags, training::TrainSettings& settings);

}  // namespace miniqat::cli
