#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"

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

/// A small result of one shard or of several together: plain bytes, the same on every machine of a kind.
struct ShardStatistic {
  enum class Kind : std::int64_t {
    /// `a` is the smallest number of a tensor, `b` the largest. Both are NaN where the tensor holds a NaN.
    kRange,
    /// Of `count` numbers: `a` is their mean, `b` the sum of their squared distances from it.
    kMoments,
    /// `a` is a sum. `b` is not used.
    kSum,
  };

  Kind kind = Kind::kSum;
  double count = 0;
  double a = 0;
  double b = 0;
};

/// `left` becomes what both subtrees show together; `left` belongs to the lower shards. Ranges enclose both. Moments
/// (Chan, Golub and LeVeque 1979, eq. 2.1), with d = mean_right - mean_left and n = n_left + n_right:
///   mean = mean_left + d * n_right / n,  squares = squares_left + squares_right + d^2 * n_left * n_right / n.
/// In double, in this order: equal inputs give equal bits in every process. Kind and the number of values are alike.
void combine(ShardStatistic& left, const ShardStatistic& right);
void combine(std::span<ShardStatistic> left, std::span<const ShardStatistic> right);

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
  /// When finish() returns it has to hold the sum over all shards: the processes' sums, added in the tree's order
  /// (add_in_tree, or any other way to the same bits). In between its memory belongs to the exchange, and stays where
  /// it is. The order of the calls is the order of the plan's backward, the same in each process and each step of a
  /// phase (a delay that passes begins a new phase; then the order may change). Calls come from changing threads, but
  /// never two at a time, and none while combine() or finish() runs.
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

}  // namespace miniqat
