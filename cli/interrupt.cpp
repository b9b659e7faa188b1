#include "cli/interrupt.h"

#include <csignal>

namespace miniqat::cli {
namespace {

volatile std::sig_atomic_t flag = 0;

extern "C" void raise_flag(int signal) {
  flag = 1;
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

}  // namespace miniqat::cli
