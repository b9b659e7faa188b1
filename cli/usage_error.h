#pragma once

#include "core/error.h"

namespace miniqat::cli {

/// The command line asks for something that cannot be: exit status 2. Any other exception is a run that failed: 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Calls `check` and turns an Error it throws into a UsageError.
template <class Check>
auto as_usage(const Check& check) {
  try {
    return check();
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace miniqat::cli
