#pragma once

#include <cstdint>
#include <span>

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
/// tree. In one process there is nothing to exchange, and a session has no ShardExchange.
///
/// In each step a session calls
///   start(gradient) for each gradient, while backward still runs;
///   combine(statistics) once, when backward has ended everywhere in this process;
///   finish() once.
/// An implementation may therefore send gradients in buckets from start(), and must not wait there.
///
/// An error that an implementation throws ends the step: nothing of it is kept. A step that fails in this process
/// before combine() (an exception of an op) makes no further calls, and abandon() tells the implementation so.
class ShardExchange {
 public:
  virtual ~ShardExchange() = default;

  /// The shards of this process; never changes.
  virtual ShardRange range() const = 0;

  /// `sum` holds the float32 sum of one gradient over this process's shards, not yet divided by the number of shards.
  /// When finish() returns it has to hold the mean over all shards: the processes' sums, added in the tree's order
  /// (add_in_tree, or any other way to the same bits), then times 1 / range().total. In between its memory belongs to
  /// the exchange, and stays where it is. The order of the calls is the order of the plan's backward, the same in each
  /// process and each step of a phase (a delay that passes begins a new phase; then the order may change). Calls come
  /// from changing threads, but never two at a time, and none while combine() or finish() runs.
  virtual void start(Tensor& sum) = 0;
  /// values[i] of each process holds the statistic of its shards; it has to become that of all shards, made by
  /// combine() in the tree's order. Losses, ranges and moments come in this one call. Comes from the thread that called
  /// Session::train_step, as finish() does.
  virtual void combine(std::span<ShardStatistic> values) = 0;
  /// Waits until every gradient that was started is complete.
  virtual void finish() = 0;
  /// This process leaves the step. Must not wait for others, and must not throw.
  virtual void abandon() noexcept = 0;

  /// Each number becomes the sum of the processes' numbers: counts of an evaluation, of which each process has made its
  /// part. Also used with numbers that are 0 in all processes but one. Not within a step.
  virtual void add_up(std::span<std::int64_t> counts) = 0;
};

/// How a session computes training steps whose batch is several slices of the size that the graph's placeholders have.
struct ShardOptions {
  /// The slices that are fed: `range.count` of `range.total`. With an exchange it is the exchange's.
  ShardRange range = {};
  /// The threads that compute each slice. Like `range.total`, and unlike all else here, it may change the bits.
  int threads = 1;
  /// The most slices that are computed side by side.
  int at_once = 1;
  /// To the processes that compute the other slices; must stay. Null if this process computes all of them.
  ShardExchange* exchange = nullptr;
};

}  // namespace miniqat
