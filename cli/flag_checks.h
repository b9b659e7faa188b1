#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/usage_error.h"

namespace miniqat::cli {

/// For paths: an empty one, as an unset variable of a shell gives it, would otherwise mean the default.
inline CLI::Validator not_empty() {
  return CLI::Validator([](std::string& value) { return value.empty() ? "must not be empty" : std::string(); }, "");
}

/// Throws UsageError: a flag that does nothing is a misunderstanding.
[[noreturn]] inline void refuse_ignored(const std::string& flag, const std::string& beside) {
  throw UsageError(concat(flag, " has no effect with ", beside));
}

}  // namespace miniqat::cli
