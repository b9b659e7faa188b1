#pragma once

#include <string>

#include "core/text/error.h"
#include "quantize/range_kind.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

/// To be called once the settings that somebody chose (TrainSettings::given) are in place: epochs replace steps that
/// nobody chose. Throws UsageError that names both for a setting that would have no effect beside another one or beside
/// what the settings say already.
void settle_given(TrainSettings& settings);

/// Refuses symmetry flags of a rewrite that are ignored beside the options that flags and a config.json gave.
/// `width_flag`: where the narrowest weights have their bits from.
template <class Flags, class Options>
void refuse_ignored_symmetry(const Flags& flags, const Options& options,
                             const std::string& width_flag = "--weight-bits") {
  if (options.symmetric && flags.was_given("symmetric_weights"))
    refuse_ignored("--symmetric-weights", "--symmetric, which includes the weights");
  if (!flags.was_given("asymmetric_weights") || !options.asymmetric_weights) return;
  if (options.symmetric || options.symmetric_weights)
    refuse_ignored("--asymmetric-weights", options.symmetric ? "--symmetric" : "--symmetric-weights");
  if (traits_of(options.weight_range()).learned || !options.bits_config.empty()) return;
  const std::string ranges = concat("--ranges ", names_of(options.ranges)[static_cast<std::size_t>(options.ranges)]);
  refuse_ignored("--asymmetric-weights", depends_on_bits(options.ranges)
                                             ? concat(ranges, " ", width_flag, " ", options.weight_bits,
                                                      ", whose weights are observed and asymmetric")
                                             : concat(ranges, ", whose weights are asymmetric"));
}

}  // namespace miniqat::training
