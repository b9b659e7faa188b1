#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/shard_exchange.h"
#include "core/tensors/shard_statistic.h"
#include "distributed/communicator.h"
#include "distributed/tensor_sums.h"

namespace miniqat::distributed {

/// values[i] becomes what values[i] of all ranks show together, combined in the order of the balanced binary tree over
/// the ranks. Few bytes go to all at once, which then combine all; many go up the tree, whole, in log2(N) swaps.
/// Calls `meanwhile` again and again while it waits. The number of ranks must be a power of two.
void combine_statistics(Communicator& ranks, std::span<ShardStatistic> values, const std::function<void()>& meanwhile);

/// The exchange of training steps between ranks. Rank r computes the r-th of size() equal parts of the shards.
class RankExchange : public ShardExchange {
 public:
  /// `ranks` must stay. Throws Error unless the number of ranks divides the number of shards.
  RankExchange(Communicator& ranks, int shards);

  ShardRange range() const override { return range_; }
  void start(Tensor& left, const Tensor& right) override;
  void combine(std::span<ShardStatistic> values) override;
  void finish(int threads) override;
  void abandon() noexcept override;
  void add_up(std::span<std::int64_t> counts) override;

  /// The exchange for a session: a process that is alone takes no way over buffers.
  ShardExchange& exchange() { return is_alone() ? static_cast<ShardExchange&>(alone_) : *this; }
  bool is_alone() const { return ranks_.size() == 1; }
  /// The one that owns the run directory and speaks.
  bool leads() const { return ranks_.rank() == 0; }
  /// The leader's text, on all ranks.
  std::string share(std::string text);
  /// The leader's answer, on all ranks.
  bool share_answer(bool answer);
  /// The leader's bytes, of the same number on all ranks.
  void share(std::span<std::byte> data);
  /// Throws Error, which names the ranks, if not all have the same number. A process that is alone does not call
  /// `hash`, which may take long.
  void require_same(const std::function<std::uint64_t()>& hash, const std::string& what);

  /// This rank wants the run to stop after the step that comes next or runs.
  void ask_to_stop() { asks_to_stop_ = true; }
  /// Whether some rank had asked before the last step's combine(): the same on all ranks. A process that is alone need
  /// not wait for that.
  bool stop_asked() const { return is_alone() ? asks_to_stop_ : stop_asked_; }

 private:
  Communicator& ranks_;
  ShardRange range_;
  LoneExchange alone_;
  std::unique_ptr<Communicator> channel_;
  TensorSums sums_;
  /// The step's, and this class's own behind them.
  std::vector<ShardStatistic> statistics_;
  bool asks_to_stop_ = false;
  bool stop_asked_ = false;
};

}  // namespace miniqat::distributed
