#pragma once

#include <string>

#include "core/error.h"
#include "quantize/range_kind.h"
#include "training/usage_error.h"

namespace miniqat::cli {

/// Of a rewrite's flags, beside the options that they and a config.json gave.
template <class Flags, class Options>
void refuse_ignored_symmetry(const Flags& flags, const Options& options) {
  if (options.symmetric && flags.was_given("symmetric_weights"))
    training::refuse_ignored("--symmetric-weights", "--symmetric, which includes the weights");
  if (!flags.was_given("asymmetric_weights") || !options.asymmetric_weights) return;
  if (options.symmetric || options.symmetric_weights)
    training::refuse_ignored("--asymmetric-weights", options.symmetric ? "--symmetric" : "--symmetric-weights");
  if (traits_of(options.weight_range()).learned || !options.bits_config.empty()) return;
  training::refuse_ignored("--asymmetric-weights", options.ranges == quantize::RangeChoice::kObserved
                                                       ? "--ranges observed, whose weights are asymmetric"
                                                       : concat("--ranges auto --weight-bits ", options.weight_bits,
                                                                ", whose weights are observed and asymmetric"));
}

}  // namespace miniqat::cli
