#pragma once

#include <string>

#include "training/usage_error.h"

namespace miniqat::cli {

/// Of a rewrite's flags, beside the options that they and a config.json gave.
template <class Flags, class Options>
void refuse_ignored_symmetry(const Flags& flags, const Options& options) {
  if (options.symmetric && flags.was_given("symmetric_weights"))
    training::refuse_ignored("--symmetric-weights", "--symmetric, which includes the weights");
}

}  // namespace miniqat::cli
