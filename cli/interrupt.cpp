#include "cli/interrupt.h"

#include <csignal>

namespace miniqat::cli {
namespace {

/// The signal that came, or 0.
volatile std::sig_atomic_t flag = 0;

extern "C" void raise_flag(int signal) {
  flag = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  flag = 0;
  std::signal(SIGINT, raise_flag);
  std::signal(SIGTERM, raise_flag);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::requested() { return flag != 0; }

void InterruptGuard::check() {
  if (const int signal = flag) throw Interrupted(signal);
}

}  // namespace miniqat::cli
