#include "cli/interrupt.h"

#include <array>

namespace miniqat::cli {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

/// The signal that came first, or 0.
volatile std::sig_atomic_t flag = 0;

extern "C" void raise_flag(int signal) {
  if (flag == 0) flag = signal;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  static_assert(sizeof before_ / sizeof before_[0] == kSignals.size());
  flag = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = raise_flag;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool InterruptGuard::requested() { return flag != 0; }

void InterruptGuard::check() {
  if (const int signal = flag) throw Interrupted(signal);
}

BrokenPipeGuard::BrokenPipeGuard() {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGPIPE, &action, &before_);
}

BrokenPipeGuard::~BrokenPipeGuard() { ::sigaction(SIGPIPE, &before_, nullptr); }

}  // namespace miniqat::cli
