#include "distributed/tensor_sums.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/distributed/sum_check.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/errors.h"

namespace miniqat::distributed::tensor_sums_test {
namespace {

class TreeSums : public ::testing::TestWithParam<std::tuple<int, SumWay>> {};

TEST_P(TreeSums, HaveTheBitsOfOneTreeOnAnyNumberOfRanks) {
  const auto [count, way] = GetParam();
  as_ranks(count, [way = way](Communicator& ranks) { check_tree_sums(ranks, way); });
}

INSTANTIATE_TEST_SUITE_P(
    , TreeSums,
    ::testing::Combine(::testing::Values(1, 2, 4, 8),
                       ::testing::Values(SumWay::kGather, SumWay::kSlices, SumWay::kHalves, SumWay::kWhole)),
    [](const auto& test) { return concat(std::get<0>(test.param), "_", name_of(std::get<1>(test.param))); });

TEST(TreeSumsOf, BucketsThatMoveOnByThemselvesHaveTheSameBits) {
  for (const SumWay way : {SumWay::kSlices, SumWay::kHalves})
    as_ranks(4, [way](Communicator& ranks) { check_tree_sums(ranks, way, std::chrono::microseconds(50)); });
}

TEST(TreeSumsOf, BucketsMoveOnWhileNobodyCalls) { as_ranks(4, check_sums_move_on); }

TEST(TreeSumsOf, ThreeRanksAreRefused) {
  const auto three = [] {
    as_ranks(3, [](Communicator& ranks) {
      float value = 1;
      TensorSums(ranks).hand_over(std::span(&value, 1));
    });
  };
  EXPECT_TRUE(testing::mentions(testing::error_of(three), {"3 ranks", "must be a power of two"}));
}

TEST(SmallTalk, OfThreads) {
  for (const int count : {1, 2, 3}) as_ranks(count, check_small_talk);
}

TEST(SumWays, FewNumbersAreGathered) {
  EXPECT_EQ(sum_way(10), SumWay::kGather);
  EXPECT_EQ(sum_way(1 << 18), SumWay::kHalves);
}

}  // namespace
}  // namespace miniqat::distributed::tensor_sums_test
