#pragma once

#include <string>

#include "cli/usage_error.h"

namespace miniqat::cli {

/// Throws UsageError: a flag that does nothing is a misunderstanding.
[[noreturn]] inline void refuse_ignored(const std::string& flag, const std::string& beside) {
  throw UsageError(concat(flag, " has no effect with ", beside));
}

}  // namespace miniqat::cli
