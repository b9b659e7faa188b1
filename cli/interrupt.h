#pragma once

#include <exception>

namespace miniqat::cli {

/// SIGINT or SIGTERM has come, and what must not be left behind is gone: the program may end by that signal.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

/// While one lives, the first SIGINT or SIGTERM only raises a flag, so that a run can end between two steps; the
/// second acts as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;

  static bool requested();
  /// Throws Interrupted when one was requested.
  static void check();
};

}  // namespace miniqat::cli
