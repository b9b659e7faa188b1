#include "distributed/dead_rank_watch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace miniqat::distributed {
namespace {

using Clock = std::chrono::steady_clock;

/// When the wait for ranks began; none has begun at the clock's epoch.
std::atomic<Clock::time_point> waits_since = Clock::time_point{};

}  // namespace

WaitForRanks::WaitForRanks() : outermost_(waits_since.load() == Clock::time_point{}) {
  if (outermost_) waits_since = Clock::now();
}

WaitForRanks::~WaitForRanks() {
  if (outermost_) waits_since = Clock::time_point{};
}

DeadRankWatch::DeadRankWatch(bool (*asked)(), std::function<void()> end, std::chrono::milliseconds patience)
    : patience_(patience),
      thread_([this, asked, end = std::move(end)](const std::stop_token& stop) { look(stop, asked, end); }) {}

void DeadRankWatch::look(const std::stop_token& stop, bool (*asked)(), const std::function<void()>& end) const {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any stopped;
  Clock::time_point asked_at{};
  while (!stop.stop_requested()) {
    stopped.wait_for(lock, stop, patience_ / 20, [] { return false; });
    if (!asked()) continue;
    const auto now = Clock::now();
    if (asked_at == Clock::time_point{}) asked_at = now;
    const auto since = waits_since.load();
    if (since == Clock::time_point{} || now - std::max(since, asked_at) < patience_) continue;
    end();
    return;
  }
}

}  // namespace miniqat::distributed
