#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace miniqat::training {

/// How a program ended and what it printed.
struct Finished {
  /// The exit status, or 128 + the signal that ended it; 127 when there is no such program.
  int status = 0;
  /// The program took too long and was killed.
  bool timed_out = false;
  std::string out;
  std::string err;
};

/// Runs a program found along PATH, in a process group of its own, and waits until it has ended and nobody can write to
/// its output any more, whichever comes last. After `limit` (none when 0) the whole group is killed; likewise when
/// `check` throws, which is called about ten times a second while the program runs: its exception passes on. The
/// program has our environment and ORT_DISABLE_TELEMETRY=1. Throws Error when the program cannot be started or waited
/// for; then it is killed, too.
Finished run_program(const std::vector<std::string>& command, std::chrono::seconds limit,
                     const std::function<void()>& check = {});

}  // namespace miniqat::training
