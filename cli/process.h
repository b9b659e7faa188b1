#pragma once

#include <csignal>
#include <functional>
#include <string>

#include "core/platform/interruption.h"

namespace miniqat::cli {

/// SIGINT, SIGTERM or SIGHUP has come, and what must not be left behind is gone: the program may end by that signal.
class Interrupted : public Interruption {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

/// While one lives, the first SIGINT, SIGTERM or SIGHUP only raises a flag, so that a run can end between two steps; a
/// second of the same kind acts as usual. What is still under way a moment later ends at its next interruption_point(),
/// so that a command ends within a second. A signal that was ignored before stays ignored: so does nohup's SIGHUP, and
/// the SIGINT of a shell's background jobs.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;

  static bool requested();
  /// Throws Interrupted when one was requested.
  static void check();

 private:
  struct sigaction before_[3];
  const InterruptionScope scope_;
};

/// While one lives, a reader of our output who goes away (`| head -1`) makes writes fail instead of ending the process.
class BrokenPipeGuard {
 public:
  BrokenPipeGuard();
  ~BrokenPipeGuard();
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;

 private:
  struct sigaction before_;
};

/// Calls `work`, which asks an observer whether to stop: a signal ends it between two steps, and what it then throws is
/// Interrupted. Writes to a reader who has gone fail.
void run_until_stopped(const std::function<void()>& work);

/// Takes the places of those of stdin, stdout and stderr that are closed, so that no file which the program opens gets
/// one of their numbers and the next line printed. Writing there fails as before. Call it before anything is opened.
void keep_standard_streams();

/// Flushes stdout; why something that was printed did not arrive, "" when all did. Also "" when it is a pipe whose
/// reader has gone (`| head -1`): who stops reading wants no more.
std::string failure_of_stdout();

}  // namespace miniqat::cli
