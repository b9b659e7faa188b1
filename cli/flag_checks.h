#pragma once

#include <string>

#include "cli/usage_error.h"

namespace miniqat::cli {

/// Throws UsageError: a flag that does nothing is a misunderstanding.
[[noreturn]] inline void refuse_ignored(const std::string& flag, const std::string& beside) {
  throw UsageError(concat(flag, " has no effect with ", beside));
}

/// Of a rewrite's flags, beside the options that they and a config.json gave.
template <class Flags, class Options>
void refuse_ignored_symmetry(const Flags& flags, const Options& options) {
  if (options.symmetric && flags.was_given("symmetric_weights"))
    refuse_ignored("--symmetric-weights", "--symmetric, which includes the weights");
}

}  // namespace miniqat::cli
