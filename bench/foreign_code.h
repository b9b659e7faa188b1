#pragma once

#include <signal.h>

#include <array>
#include <cfenv>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/platform/floating_point_control.h"

// Code of others may crash, hang, throw, end the process or change how its thread computes. Each is an error that names
// the code.

namespace miniqat::bench {

/// Memory between pages that cannot be touched, for kernels of others: who reads or writes beyond one end crashes (a
/// Trial says where), who writes beyond the other end damages a pattern. (core/memory/guarded_memory.h does this for
/// the whole program, and aligns to 64 bytes; here a float may be the last or the first of a page.)
class GuardedArray {
 public:
  /// Where the array touches the page: the other end has the pattern.
  enum class Side { kEnd, kBegin };

  /// `name` is a literal: "x". Throws Error when there is no memory.
  GuardedArray(const char* name, std::size_t most_bytes);
  ~GuardedArray();
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;

  /// Memory for `bytes`, at most most_bytes, right at one end; what it held before is gone. `alignment`, at most 64,
  /// may leave a gap there, which has the pattern.
  void* take(std::size_t bytes, Side side, std::size_t alignment = 1);
  std::span<float> floats(std::size_t count, Side side) {
    return {static_cast<float*>(take(count * sizeof(float), side)), count};
  }
  /// "wrote 4 bytes before the begin of y", by the pattern around what take() gave last; empty when all is well.
  std::string damage() const;

  /// What a fault did, for a handler of SIGSEGV or SIGBUS with the `info` and `context` that it was given: "wrote 8
  /// bytes after the end of y", "read right after the end of y". Returns its length; 0 when the address is not near any
  /// array.
  static std::size_t describe_fault(const siginfo_t& info, const void* context, char* text, std::size_t capacity);

 private:
  bool write_place(const std::byte* address, char* text, std::size_t capacity) const;
  std::string place_text(const std::byte* address) const;

  const char* name_;
  std::byte* mapping_;
  std::size_t mapped_;
  std::size_t guard_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

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
