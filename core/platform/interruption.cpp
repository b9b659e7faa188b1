#include "core/platform/interruption.h"

#include <atomic>

namespace miniqat {
namespace {

std::atomic<void (*)()> current_check = nullptr;

}  // namespace

InterruptionScope::InterruptionScope(void (*check)()) : before_(current_check.exchange(check)) {}
InterruptionScope::~InterruptionScope() { current_check = before_; }

BlockedSignals::BlockedSignals() {
  static const sigset_t blocked = [] {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
    return all;
  }();
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}
BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void interruption_point() {
  if (void (*const check)() = current_check.load(std::memory_order_relaxed)) check();
}

}  // namespace miniqat
