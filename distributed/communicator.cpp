#include "distributed/communicator.h"

#include <cmath>
#include <thread>
#include <vector>

namespace miniqat::distributed {
namespace {

/// Looks before a waiting thread gives its core away: some tens of microseconds.
constexpr int kLooks = 200;

float chosen(float mine, float theirs, bool theirs_is_better) {
  if (std::isnan(mine)) return mine;
  return std::isnan(theirs) || theirs_is_better ? theirs : mine;
}

}  // namespace

void wait_for(Transfer& transfer, const std::function<void()>& meanwhile) {
  for (int looks = 0; !transfer.done(); ++looks) {
    meanwhile();
    if (looks >= kLooks) std::this_thread::yield();
  }
}

void gather(Communicator& ranks, std::span<const std::byte> out, std::span<std::byte> in) {
  wait_for(*ranks.all_gather(out, in));
}

void widen(Communicator& ranks, std::span<LowHigh> ranges) {
  if (ranges.empty()) return;
  std::vector<LowHigh> all(ranges.size() * ranks.size());
  gather(ranks, std::as_bytes(std::span<const LowHigh>(ranges)), std::as_writable_bytes(std::span(all)));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = all[i];
    for (std::size_t k = i + ranges.size(); k < all.size(); k += ranges.size()) {
      ranges[i].low = chosen(ranges[i].low, all[k].low, all[k].low < ranges[i].low);
      ranges[i].high = chosen(ranges[i].high, all[k].high, all[k].high > ranges[i].high);
    }
  }
}

}  // namespace miniqat::distributed
