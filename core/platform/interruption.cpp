#include "core/platform/interruption.h"

#include <atomic>

namespace miniqat {
namespace {

std::atomic<void (*)()> current_check = nullptr;

}  // namespace

InterruptionScope::InterruptionScope(void (*check)()) : before_(current_check.exchange(check)) {}
InterruptionScope::~InterruptionScope() { current_check = before_; }

void interruption_point() {
  if (void (*const check)() = current_check.load(std::memory_order_relaxed)) check();
}

}  // namespace miniqat
