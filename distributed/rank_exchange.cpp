#include "distributed/rank_exchange.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/text/error.h"
#include "distributed/combine_statistics.h"
#include "distributed/launch.h"

namespace miniqat::distributed {
namespace {

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

RankExchange::RankExchange(Communicator& ranks, int shards)
    : ranks_(ranks),
      range_(range_of(ranks, shards)),
      channel_(ranks.channel()),
      sums_(ranks, bucket_options(ranks, shards)) {
  require_subtree(range_);
}

void RankExchange::start(Tensor& sum) { sums_.hand_over(sum.values<float>()); }

void RankExchange::combine(std::span<ShardStatistic> values) {
  sums_.flush();
  statistics_.assign(values.begin(), values.end());
  statistics_.push_back({.kind = ShardStatistic::Kind::kSum, .a = asks_to_stop_ ? 1.0 : 0.0});
  combine_statistics(*channel_, statistics_, [this] { sums_.progress(); });
  stop_asked_ = statistics_.back().a > 0;
  std::copy_n(statistics_.begin(), values.size(), values.begin());
}

void RankExchange::finish() { sums_.finish(); }

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
