#include "distributed/periodic_call.h"

#include <utility>

#include "core/threads/parallel.h"

namespace miniqat::distributed {

PeriodicCall::PeriodicCall(std::chrono::microseconds interval, std::function<void()> beat)
    : interval_(interval), beat_(std::move(beat)) {}

PeriodicCall::~PeriodicCall() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void PeriodicCall::resume() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  beats_ = true;
  if (sleeps_) changed_.notify_one();
}

void PeriodicCall::halt() noexcept {
  const std::lock_guard lock(mutex_);
  beats_ = false;
}

void PeriodicCall::pause() {
  halt();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void PeriodicCall::run() {
  // Sums have the bits that they have on the threads of a step.
  const FlushDenormals flushed;
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!beats_) {
      sleeps_ = true;
      changed_.wait(lock);
      sleeps_ = false;
      continue;
    }
    // Who pauses and resumes in between need not wake this thread.
    changed_.wait_for(lock, interval_);
    if (!beats_ || ended_) continue;
    try {
      beat_();
    } catch (...) {
      failure_ = std::current_exception();
      beats_ = false;
    }
  }
}

}  // namespace miniqat::distributed
