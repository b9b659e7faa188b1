#include "distributed/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "core/text/error.h"
#include "distributed/dead_rank_watch.h"

namespace miniqat::distributed {
namespace {

/// Looks before a waiting thread gives its core away: some tens of microseconds.
constexpr int kLooks = 200;

class Arrived : public Transfer {
 public:
  bool done() override { return true; }
};

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

}  // namespace miniqat::distributed
