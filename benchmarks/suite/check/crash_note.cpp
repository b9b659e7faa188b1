#include "benchmarks/suite/check/crash_note.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "benchmarks/suite/check/guarded_array.h"
#include "core/error.h"
#include "core/text/counted.h"

namespace miniqat::benchmarks {
namespace {

/// What the signal handler writes: it may take no memory.
struct SignalText {
  std::array<char, 640> letters;
  std::size_t length = 0;

  void set(const std::string& text) {
    length = std::min(text.size(), letters.size());
    std::copy_n(text.begin(), length, letters.begin());
  }
  void write() const { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, letters.data(), length); }
};
SignalText begin_text, crash_text, hang_text, exit_text;
std::atomic<bool> is_noted = false;

std::size_t signal_stack_bytes() { return std::max<std::size_t>(std::size_t{64} << 10, MINSIGSTKSZ); }

/// At an exit() that the noted code calls: nobody else would tell of it.
void tell_exit() {
  if (!is_noted) return;
  exit_text.write();
  ::_exit(1);
}

/// The signal comes again when this returns, now with nobody to catch it.
void tell_crash(int signal, siginfo_t* info, void* context) {
  SignalText fault = {};
  if (signal == SIGSEGV || signal == SIGBUS)
    fault.length = GuardedArray::describe_fault(*info, context, fault.letters.data(), fault.letters.size() - 1);
  if (signal == SIGALRM) {
    hang_text.write();
  } else if (fault.length == 0) {
    crash_text.write();
  } else {
    fault.letters[fault.length++] = '\n';
    begin_text.write();
    fault.write();
  }
  ::raise(signal);
}

}  // namespace

SignalStack::SignalStack() {
  stack_t before = {};
  // Sanitizers have one of their own.
  if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
  memory_ = std::make_unique<std::byte[]>(signal_stack_bytes());
  stack_t own = {};
  own.ss_sp = memory_.get();
  own.ss_size = signal_stack_bytes();
  ::sigaltstack(&own, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

CrashNote::CrashNote(const std::string& what, int limit_seconds) {
  const std::string begin = "miniqat bench: " + what + ": ";
  begin_text.set(begin);
  crash_text.set(begin + "crashed\n");
  hang_text.set(concat(begin, "did not end within ", counted(limit_seconds, "second"), "\n"));
  struct sigaction action = {};
  action.sa_sigaction = tell_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_SIGINFO | SA_ONSTACK);
  thread_local const SignalStack stack;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  exit_text.set(begin + "ended the process\n");
  [[maybe_unused]] static const bool watches_exits = std::atexit(tell_exit) == 0 && ::at_quick_exit(tell_exit) == 0;
  is_noted = true;
  ::alarm(static_cast<unsigned>(limit_seconds));
}

CrashNote::~CrashNote() {
  is_noted = false;
  ::alarm(0);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace miniqat::benchmarks
