// What slices of a step, and processes, exchange: sums in a tree, ranges, moments; and the exchange of one process
// alone.

#include "core/engine/shard_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/tensors/random.h"
#include "tests/errors.h"

namespace miniqat::shard_exchange_test {
namespace {

using testing::error_of;
using testing::mentions;
using Kind = ShardStatistic::Kind;

TEST(ShardExchangeTest, ASubtreeIsAnAlignedPowerOfTwo) {
  require_subtree({.total = 8, .first = 4, .count = 4});
  require_subtree({.total = 8, .first = 7, .count = 1});
  EXPECT_TRUE(mentions(error_of([] { require_subtree({.total = 6, .first = 0, .count = 2}); }), {"power of two", "6"}));
  EXPECT_TRUE(mentions(error_of([] { require_subtree({.total = 8, .first = 0, .count = 3}); }), {"8 shards", "3"}));
  EXPECT_TRUE(mentions(error_of([] { require_subtree({.total = 8, .first = 2, .count = 4}); }), {"multiple of 4"}));
  EXPECT_TRUE(mentions(error_of([] { require_subtree({.total = 8, .first = 8, .count = 2}); }), {"is 8"}));
}

TEST(ShardExchangeTest, RangesEncloseAndKeepANan) {
  ShardStatistic range{.kind = Kind::kRange, .a = -1, .b = 2};
  combine(range, {.kind = Kind::kRange, .a = -0.5, .b = 9});
  EXPECT_EQ(range.a, -1);
  EXPECT_EQ(range.b, 9);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ShardStatistic left = range;
  combine(left, {.kind = Kind::kRange, .a = nan, .b = nan});
  EXPECT_TRUE(std::isnan(left.a) && std::isnan(left.b));
  combine(left, range);
  EXPECT_TRUE(std::isnan(left.a) && std::isnan(left.b));
}

/// Moments of numbers far from 0, where the plain sum of squares would lose everything.
TEST(ShardExchangeTest, MomentsOfPartsAreThoseOfTheWhole) {
  Random random(3);
  std::vector<double> numbers(24);
  for (double& number : numbers) number = 1e8 + random.uniform();
  const auto moments = [&](std::size_t first, std::size_t last) {
    const auto n = static_cast<double>(last - first);
    double mean = 0, squares = 0;
    for (std::size_t i = first; i < last; ++i) mean += (numbers[i] - 1e8) / n;
    for (std::size_t i = first; i < last; ++i) squares += (numbers[i] - 1e8 - mean) * (numbers[i] - 1e8 - mean);
    return ShardStatistic{.kind = Kind::kMoments, .count = n, .a = mean + 1e8, .b = squares};
  };
  ShardStatistic left = moments(0, 5), right = moments(5, 24);
  combine(left, right);
  const ShardStatistic whole = moments(0, 24);
  EXPECT_EQ(left.count, 24);
  EXPECT_NEAR(left.a - 1e8, whole.a - 1e8, 1e-7);
  EXPECT_NEAR(left.b, whole.b, 1e-6);
}

/// The sum in the written order of brackets, to the bit, and none of the other orders' bits.
TEST(ShardExchangeTest, AddsInTheTree) {
  const float big = 1 << 24;
  float a = big, b = 1, c = 1, d = 1, e = 1, f = 1, g = -big, h = 1;
  const float tree = ((a + b) + (c + d)) + ((e + f) + (g + h)), in_a_row = ((((((a + b) + c) + d) + e) + f) + g) + h;
  ASSERT_NE(tree, in_a_row);
  add_in_tree(std::vector<float*>{&a, &b, &c, &d, &e, &f, &g, &h}, 1);
  EXPECT_EQ(a, tree);
}

/// What a step that was given up had started is not touched by the next.
TEST(LoneExchangeTest, TakesTheMeansOfItsStep) {
  LoneExchange alone(4);
  const auto numbers = [](float x) { return Tensor::from<float>({2}, {x, 2 * x}); };
  Tensor given_up = numbers(4), whole = numbers(4), left = numbers(4);
  alone.start(given_up, {});
  alone.abandon();
  alone.start(whole, {});
  alone.start(left, numbers(8));
  alone.finish(1);
  const auto second = [](const Tensor& tensor) { return tensor.data<float>()[1]; };
  EXPECT_EQ(second(given_up), 8);
  EXPECT_EQ(second(whole), 2);
  EXPECT_EQ(second(left), 6);
}

}  // namespace
}  // namespace miniqat::shard_exchange_test
