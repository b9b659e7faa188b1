#pragma once

#include <string>
#include <vector>

namespace miniqat::cli {

/// How a program ended and what it printed.
struct Finished {
  /// The exit status, or 128 + the signal that ended it; 127 when there is no such program.
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs a program found along PATH and waits for its end. Throws Error when it cannot be started.
Finished run_program(const std::vector<std::string>& command);

}  // namespace miniqat::cli
