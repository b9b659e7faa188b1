#pragma once

#include <cstdint>
#include <span>

namespace miniqat {

/// A small result of one shard or of several together: plain bytes, the same on every machine of a kind.
struct ShardStatistic {
  enum class Kind : std::int64_t {
    /// `a` is the smallest number of a tensor, `b` the largest. Both are NaN where the tensor holds a NaN.
    kRange,
    /// `a` is the mean of `count` numbers, `b` the sum of their squared distances from it.
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

}  // namespace miniqat
