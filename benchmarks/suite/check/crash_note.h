#pragma once

#include <signal.h>

#include <array>
#include <string>

namespace miniqat::benchmarks {

/// While it lives, a signal that ends the process (a fault, an abort) first writes "miniqat bench: <what>: crashed" to
/// the standard error output. For code of others that needs threads, so that it can be in no Trial. One at a time.
class CrashNote {
 public:
  explicit CrashNote(const std::string& what);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace miniqat::benchmarks
