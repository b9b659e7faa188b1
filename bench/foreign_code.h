#pragma once

#include <signal.h>

#include <array>
#include <cfenv>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/platform/floating_point_control.h"

// Code of others may crash, hang, throw, end the process or change how its thread computes. Each is an error that names
// the code.

namespace miniqat::bench {

/// Runs code of others in a process of its own, so that its crash is an error and not ours. Returns "", or the text of
/// an Error that `work` throws. If it throws anything else, or the process ends otherwise, returns the cause: "forward
/// of 17 elements: wrote right after the end of y", "... ended by signal 8 (Floating point exception)", "... did not
/// end within 60 seconds". At most 4,000 bytes. `work` runs on one thread, and may start no others. Throws Error when
/// there can be no process.
std::string run_trial(const std::function<void()>& work);

/// Within `work`: what is done next, for the text.
void trial_step(const std::string& what);

/// While it lives, the calling thread can handle the signal of an overflow of its stack.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;
};

/// While it lives, a signal that ends the process (a fault, an abort) first writes "miniqat bench: <what>: crashed" to
/// the standard error output, or what it touched beside a GuardedArray. If it lives longer than `limit_seconds`, it
/// writes "<what>: did not end within 60 seconds", and SIGALRM ends the process. At an exit() it writes "<what>: ended
/// the process", and the status is 1. For code that needs threads, so that it can be in no trial. One at a time.
class CrashNote {
 public:
  explicit CrashNote(const std::string& what, int limit_seconds = 60);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
  std::array<struct sigaction, kSignals.size()> before_;
};

/// Code of others may change how the calling thread rounds and what it does with denormals. The reference runs in the
/// same thread, and would be wrong with it.
class ControlWatch {
 public:
  /// The fault, for errors.
  static constexpr const char* kFault = "leaves the rounding mode or another switch of floating-point numbers changed";

  ControlWatch() : switches_(switches()), rounding_(std::fegetround()) {}
  /// Puts all back as it was at the construction. Returns whether something was changed.
  bool put_back() const {
    if (switches() == switches_ && std::fegetround() == rounding_) return false;
    std::fesetround(rounding_);
    set_floating_point_control(switches_);
    return true;
  }

 private:
  static unsigned switches() { return floating_point_control() & ~kRaisedFlags; }

  unsigned switches_;
  int rounding_;
};

}  // namespace miniqat::bench
