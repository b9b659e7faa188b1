#include "distributed/communicator.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/text/error.h"

namespace miniqat::distributed {
namespace {

/// Looks before a waiting thread gives its core away: some tens of microseconds.
constexpr int kLooks = 200;

class Arrived : public Transfer {
 public:
  bool done() override { return true; }
};

using Clock = std::chrono::steady_clock;

/// When the wait for ranks began; none has begun at the clock's epoch.
std::atomic<Clock::time_point> waits_since = Clock::time_point{};

}  // namespace

std::unique_ptr<Transfer> LoneCommunicator::all_to_all(std::span<const std::byte> out, std::span<std::byte> in) {
  std::ranges::copy(out, in.begin());
  return std::make_unique<Arrived>();
}

std::unique_ptr<Transfer> LoneCommunicator::all_gather(std::span<const std::byte> out, std::span<std::byte> in) {
  return all_to_all(out, in);
}

std::unique_ptr<Transfer> LoneCommunicator::swap(int partner, std::span<const std::byte>, std::span<std::byte>) {
  fail("there is no rank ", partner, ": this process is alone");
}

std::unique_ptr<Transfer> LoneCommunicator::broadcast(std::span<std::byte>, int) { return std::make_unique<Arrived>(); }

std::unique_ptr<Transfer> LoneCommunicator::barrier() { return std::make_unique<Arrived>(); }

void LoneCommunicator::abort(int status) { std::_Exit(status); }

LoneCommunicator& alone() {
  static LoneCommunicator communicator;
  return communicator;
}

void wait_for(Transfer& transfer, const std::function<void()>& meanwhile) {
  const WaitForRanks waits;
  for (int looks = 0; !transfer.done(); ++looks) {
    meanwhile();
    if (looks >= kLooks) std::this_thread::yield();
  }
}

void gather(Communicator& ranks, std::span<const std::byte> out, std::span<std::byte> in) {
  wait_for(*ranks.all_gather(out, in));
}

std::string broadcast_text(Communicator& ranks, std::string text) {
  std::uint64_t length = text.size();
  wait_for(*ranks.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0));
  text.resize(length);
  wait_for(*ranks.broadcast(std::as_writable_bytes(std::span(text)), 0));
  return text;
}

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
