#pragma once

#include <string>

#include "core/text/error.h"

namespace miniqat::training {

/// The settings ask for something that cannot be, under the names of miniqat's flags; the program ends with status 2
/// then. Any other exception is a run that failed: 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Nothing says what to work on. The program adds where its flags are explained.
class MissingArgument : public UsageError {
 public:
  using UsageError::UsageError;
};

inline void require(bool right, const std::string& text) {
  if (!right) throw UsageError(text);
}

/// Calls `check` and turns an Error it throws into a UsageError.
template <class Check>
decltype(auto) as_usage(const Check& check) {
  try {
    return check();
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

/// Throws UsageError: a flag that does nothing is a misunderstanding.
[[noreturn]] inline void refuse_ignored(const std::string& flag, const std::string& beside) {
  throw UsageError(concat(flag, " has no effect with ", beside));
}

}  // namespace miniqat::training
