#include "benchmarks/suite/check/crash_note.h"

#include <unistd.h>

#include <algorithm>

namespace miniqat::benchmarks {
namespace {

/// What the signal handler writes: it may take no memory.
std::array<char, 512> crash_text;
std::size_t crash_length = 0;

/// The signal comes again when this returns, now with nobody to catch it.
void tell_crash(int signal) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, crash_text.data(), crash_length);
  ::raise(signal);
}

}  // namespace

CrashNote::CrashNote(const std::string& what) {
  const std::string text = "miniqat bench: " + what + ": crashed\n";
  crash_length = std::min(text.size(), crash_text.size());
  std::copy_n(text.begin(), crash_length, crash_text.begin());
  struct sigaction action = {};
  action.sa_handler = tell_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

CrashNote::~CrashNote() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace miniqat::benchmarks
