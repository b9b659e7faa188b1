#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensors/shard_statistic.h"
#include "core/tensors/tensor.h"

namespace miniqat {

/// The part of a global batch that one process computes: shards [first, first + count) of `total`. `total` and `count`
/// are powers of two and `first` is a multiple of `count`, so that they are one subtree of the balanced binary tree
/// over all shards: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)).
struct ShardRange {
  int total = 1;
  int first = 0;
  int count = 1;

  bool operator==(const ShardRange&) const = default;
};

/// Throws Error that states the rule, unless `range` is as above.
void require_subtree(const ShardRange& range);

/// parts[0] becomes the sum of all parts, `n` floats each, added in the balanced tree ((0 + 1) + (2 + 3)) + ...; the
/// other parts hold anything afterwards. The number of parts is a power of two.
void add_in_tree(std::span<float* const> parts, std::int64_t n);

/// What a training step with shards needs of the other processes that compute the rest of the same global batch. All
/// processes make the same calls in the same order, once a step each; the lowest shard's process is the left end of the
/// tree.
///
/// In each step a session calls
///   start(gradient) for each gradient, while backward still runs;
///   combine(statistics) once, when backward has ended everywhere in this process;
///   finish(threads) once.
/// An implementation may therefore send gradients in buckets from start(), and must not wait there.
///
/// An error that an implementation throws ends the step: nothing of it is kept. A step that fails in this process
/// before combine() (an exception of an op) makes no further calls, and abandon() tells the implementation so.
class ShardExchange {
 public:
  virtual ~ShardExchange() = default;

  /// The shards of this process; never changes.
  virtual ShardRange range() const = 0;

  /// `left` and `right` hold the sums of one gradient over the halves of this process's shards, not yet divided by the
  /// number of shards; `right` is undefined for one shard. float32, unless there is one process. When finish() returns
  /// `left` has to hold the mean over all shards: the halves, then the processes' sums, added in the tree's order
  /// (add_in_tree, or any other way to the same bits), then times 1 / range().total. In between the memory of both
  /// belongs to the exchange, and stays where it is. The order of the calls is the order of the plan's backward, the
  /// same in each process and each step of a phase (a delay that passes begins a new phase; then the order may change).
  /// Calls come from changing threads, but never two at a time, and none while combine() or finish() runs.
  virtual void start(Tensor& left, const Tensor& right) = 0;
  /// values[i] of each process holds the statistic of its shards; it has to become that of all shards, made by
  /// combine() in the tree's order. Losses, ranges and moments come in this one call. Comes from the thread that called
  /// Session::train_step, as finish() does.
  virtual void combine(std::span<ShardStatistic> values) = 0;
  /// Waits until every gradient that was started is complete. So many threads of this process are free for it.
  virtual void finish(int threads) = 0;
  /// This process leaves the step. Must not wait for others, and must not throw.
  virtual void abandon() noexcept = 0;

  /// Each number becomes the sum of the processes' numbers: counts of an evaluation, of which each process has made its
  /// part. Also used with numbers that are 0 in all processes but one. Not within a step.
  virtual void add_up(std::span<std::int64_t> counts) = 0;
};

/// The exchange of a process that computes all shards, and is done with a gradient once it has the mean.
class LoneExchange final : public ShardExchange {
 public:
  explicit LoneExchange(int shards) : shards_(shards) {}

  ShardRange range() const override { return {.total = shards_, .first = 0, .count = shards_}; }
  void start(Tensor& left, const Tensor& right) override { started_.push_back({left, right}); }
  void combine(std::span<ShardStatistic>) override {}
  /// All threads share the additions, the last one too.
  void finish(int threads) override;
  void abandon() noexcept override { started_.clear(); }
  void add_up(std::span<std::int64_t>) override {}

 private:
  struct Halves {
    Tensor left, right;
  };

  const int shards_;
  std::vector<Halves> started_;
};

/// How a session computes training steps whose batch is several slices of the size that the graph's placeholders have.
struct ShardOptions {
  /// To the processes that compute the other slices; must stay. Its range() has the slices that are fed.
  ShardExchange& exchange;
  /// The threads that compute each slice. Like the number of all slices, and unlike all else here, it may change the
  /// bits.
  int threads = 1;
  /// The most slices that are computed side by side.
  int at_once = 1;
};

}  // namespace miniqat
