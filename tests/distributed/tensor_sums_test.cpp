#include "distributed/tensor_sums.h"

#include <gtest/gtest.h>

#include <atomic>
#include <tuple>

#include "core/text/error.h"
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

using std::chrono::microseconds;

void wait_until(const std::atomic<int>& count, int least) {
  while (count < least) std::this_thread::yield();
}

TEST(PeriodicCall, BeatsBetweenResumeAndPause) {
  std::atomic<int> beats = 0;
  PeriodicCall periodic(microseconds(20), [&] { ++beats; });
  EXPECT_EQ(beats, 0);
  for (int round = 0; round < 20; ++round) {
    periodic.resume();
    wait_until(beats, beats + 2);
    periodic.pause();
    const int now = beats;
    std::this_thread::sleep_for(microseconds(200));
    EXPECT_EQ(beats, now);
  }
}

// No lock of the owner's: what a beat does, it does before pause() returns.
TEST(PeriodicCall, PauseWaitsForABeat) {
  std::atomic<int> begun = 0;
  int ended = 0;
  PeriodicCall periodic(microseconds(10), [&] {
    ++begun;
    std::this_thread::sleep_for(microseconds(300));
    ++ended;
  });
  for (int round = 1; round <= 5; ++round) {
    periodic.resume();
    wait_until(begun, begun + 1);
    periodic.pause();
    EXPECT_EQ(ended, begun);
  }
}

TEST(PeriodicCall, PauseThrowsWhatABeatThrewOnce) {
  std::atomic<int> beats = 0;
  PeriodicCall periodic(microseconds(10), [&] {
    ++beats;
    fail("the network is gone");
  });
  periodic.resume();
  wait_until(beats, 1);
  EXPECT_THROW(periodic.pause(), Error);
  EXPECT_EQ(beats, 1);
  EXPECT_NO_THROW(periodic.pause());
  periodic.resume();
  wait_until(beats, 2);
  periodic.halt();
}

TEST(PeriodicCall, EndsWhileItBeatsOrNever) {
  std::atomic<int> beats = 0;
  {
    PeriodicCall never(microseconds(10), [&] { ++beats; });
    never.pause();
  }
  EXPECT_EQ(beats, 0);
  {
    PeriodicCall beating(microseconds(10), [&] { ++beats; });
    beating.resume();
    wait_until(beats, 1);
  }
  const int last = beats;
  std::this_thread::sleep_for(microseconds(200));
  EXPECT_EQ(beats, last);
}

}  // namespace

}  // namespace miniqat::distributed::tensor_sums_test
