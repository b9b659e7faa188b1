#include "core/tensors/shard_statistic.h"

#include <cmath>
#include <limits>

namespace miniqat {
namespace {

void enclose(ShardStatistic& left, const ShardStatistic& right) {
  if (std::isnan(left.a) || std::isnan(right.a)) {
    left.a = left.b = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  left.a = right.a < left.a ? right.a : left.a;
  left.b = right.b > left.b ? right.b : left.b;
}

void pool_moments(ShardStatistic& left, const ShardStatistic& right) {
  const double n = left.count + right.count, distance = right.a - left.a;
  left.a += distance * right.count / n;
  left.b += right.b + distance * distance * left.count * right.count / n;
  left.count = n;
}

}  // namespace

void combine(ShardStatistic& left, const ShardStatistic& right) {
  switch (left.kind) {
    case ShardStatistic::Kind::kRange:
      return enclose(left, right);
    case ShardStatistic::Kind::kMoments:
      return pool_moments(left, right);
    case ShardStatistic::Kind::kSum:
      left.a += right.a;
  }
}

void combine(std::span<ShardStatistic> left, std::span<const ShardStatistic> right) {
  for (std::size_t i = 0; i < left.size(); ++i) combine(left[i], right[i]);
}

}  // namespace miniqat
