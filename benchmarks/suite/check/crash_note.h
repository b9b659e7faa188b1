#pragma once

#include <signal.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace miniqat::benchmarks {

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
/// the process", and the status is 1. For code of others that needs threads, so that it can be in no Trial. One at a
/// time.
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

}  // namespace miniqat::benchmarks
