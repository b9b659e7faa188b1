#include "benchmarks/suite/check/crash_note.h"

#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/text/counted.h"

namespace miniqat::benchmarks {
namespace {

/// What the signal handler writes: it may take no memory.
struct SignalText {
  std::array<char, 512> letters;
  std::size_t length = 0;

  void set(const std::string& text) {
    length = std::min(text.size(), letters.size());
    std::copy_n(text.begin(), length, letters.begin());
  }
};
SignalText crash_text, hang_text;

/// The signal comes again when this returns, now with nobody to catch it.
void tell_crash(int signal) {
  const SignalText& text = signal == SIGALRM ? hang_text : crash_text;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.letters.data(), text.length);
  ::raise(signal);
}

}  // namespace

CrashNote::CrashNote(const std::string& what, int limit_seconds) {
  crash_text.set("miniqat bench: " + what + ": crashed\n");
  hang_text.set(concat("miniqat bench: ", what, ": did not end within ", counted(limit_seconds, "second"), "\n"));
  struct sigaction action = {};
  action.sa_handler = tell_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  ::alarm(static_cast<unsigned>(limit_seconds));
}

CrashNote::~CrashNote() {
  ::alarm(0);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace miniqat::benchmarks
