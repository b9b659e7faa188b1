#include "distributed/rank_exchange.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/engine/sweep.h"
#include "core/text/error.h"
#include "distributed/launch.h"

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

ShardRange range_of(const Communicator& ranks, int shards) {
  if (shards % ranks.size() != 0)
    fail(ranks.size(), " ranks cannot share ", shards, " shards equally: the number of ranks must divide --shards");
  const int count = shards / ranks.size();
  return {.total = shards, .first = ranks.rank() * count, .count = count};
}

/// A network moves data while backward computes, if somebody sees to it. Between ranks of one machine cores move them,
/// which have other things to do then.
BucketOptions bucket_options(Communicator& ranks, int shards) {
  return {.factor = 1 / static_cast<float>(shards),
          .interval = std::chrono::milliseconds(on_one_machine(ranks) ? 0 : 1)};
}

}  // namespace

void combine_statistics(Communicator& ranks, std::span<ShardStatistic> values, const std::function<void()>& meanwhile) {
  if (values.size_bytes() * ranks.size() <= kGatheredBytes)
    combine_gathered(ranks, values, meanwhile);
  else
    combine_swapped(ranks, values, meanwhile);
}

namespace {

/// Channels are opened together. A rank that loads its data is waited for here, in a way that an end of that rank ends.
Communicator& in_step(Communicator& ranks) {
  if (ranks.size() > 1) wait_for(*ranks.barrier());
  return ranks;
}

}  // namespace

RankExchange::RankExchange(Communicator& ranks, int shards)
    : ranks_(in_step(ranks)),
      range_(range_of(ranks, shards)),
      alone_(shards),
      channel_(ranks.channel()),
      sums_(ranks, bucket_options(ranks, shards)) {
  require_subtree(range_);
}

void RankExchange::start(Tensor& left, const Tensor& right) {
  if (right.defined()) add_to(left, right);
  sums_.hand_over(left.values<float>());
}

void RankExchange::combine(std::span<ShardStatistic> values) {
  sums_.flush();
  statistics_.assign(values.begin(), values.end());
  statistics_.push_back({.kind = ShardStatistic::Kind::kSum, .a = asks_to_stop_ ? 1.0 : 0.0});
  combine_statistics(*channel_, statistics_, [this] { sums_.progress(); });
  stop_asked_ = statistics_.back().a > 0;
  std::copy_n(statistics_.begin(), values.size(), values.begin());
}

void RankExchange::finish(int) { sums_.finish(); }

void RankExchange::abandon() noexcept { sums_.abandon(); }

void RankExchange::add_up(std::span<std::int64_t> counts) {
  std::vector<std::int64_t> all(counts.size() * ranks_.size());
  gather(*channel_, std::as_bytes(counts), std::as_writable_bytes(std::span(all)));
  std::ranges::fill(counts, 0);
  for (std::size_t i = 0; i < all.size(); ++i) counts[i % counts.size()] += all[i];
}

void RankExchange::share(std::span<std::byte> data) { wait_for(*channel_->broadcast(data, 0)); }

bool RankExchange::share_answer(bool answer) {
  share(std::as_writable_bytes(std::span(&answer, 1)));
  return answer;
}

std::string RankExchange::share(std::string text) { return broadcast_text(*channel_, std::move(text)); }

void RankExchange::require_same(const std::function<std::uint64_t()>& hash, const std::string& what) {
  if (is_alone()) return;
  const std::vector<std::uint64_t> all = gathered(*channel_, hash());
  const auto other = std::ranges::find_if(all, [&](std::uint64_t one) { return one != all.front(); });
  if (other != all.end())
    fail("ranks 0 and ", other - all.begin(), " have different ", what, ": all must be the same to the bit");
}

}  // namespace miniqat::distributed
