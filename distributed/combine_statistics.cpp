#include "distributed/combine_statistics.h"

#include <algorithm>
#include <vector>

namespace miniqat::distributed {
namespace {

/// The most bytes of all ranks together that go to all: about what a network moves while a message begins.
constexpr std::size_t kGatheredBytes = 32768;

using Statistics = std::vector<ShardStatistic>;

void combine_gathered(Communicator& ranks, std::span<ShardStatistic> values, const std::function<void()>& meanwhile) {
  Statistics all(values.size() * ranks.size());
  wait_for(*ranks.all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all))), meanwhile);
  const auto of_rank = [&](int rank) { return std::span(all).subspan(rank * values.size(), values.size()); };
  for (int distance = 1; distance < ranks.size(); distance *= 2)
    for (int left = 0; left + distance < ranks.size(); left += 2 * distance)
      combine(of_rank(left), of_rank(left + distance));
  std::ranges::copy(of_rank(0), values.begin());
}

void combine_swapped(Communicator& ranks, std::span<ShardStatistic> values, const std::function<void()>& meanwhile) {
  Statistics theirs(values.size());
  for (int distance = 1; distance < ranks.size(); distance *= 2) {
    const int partner = ranks.rank() ^ distance;
    wait_for(*ranks.swap(partner, std::as_bytes(values), std::as_writable_bytes(std::span(theirs))), meanwhile);
    if (ranks.rank() < partner) {
      combine(values, theirs);
    } else {
      combine(theirs, values);
      std::ranges::copy(theirs, values.begin());
    }
  }
}

}  // namespace

void combine_statistics(Communicator& ranks, std::span<ShardStatistic> values, const std::function<void()>& meanwhile) {
  if (values.size_bytes() * ranks.size() <= kGatheredBytes)
    combine_gathered(ranks, values, meanwhile);
  else
    combine_swapped(ranks, values, meanwhile);
}

}  // namespace miniqat::distributed
