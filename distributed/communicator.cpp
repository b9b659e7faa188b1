#include "distributed/communicator.h"

#include <thread>

#include "distributed/dead_rank_watch.h"

namespace miniqat::distributed {
namespace {

/// Looks before a waiting thread gives its core away: some tens of microseconds.
constexpr int kLooks = 200;

}  // namespace

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
