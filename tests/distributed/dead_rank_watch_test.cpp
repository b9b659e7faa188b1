// A wait for other ranks, one of which may be dead.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "distributed/communicator.h"

namespace miniqat::distributed::dead_rank_watch_test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(40);
std::atomic<bool> asked;

class DeadRankWatchTest : public ::testing::Test {
 protected:
  void SetUp() override { asked = false; }

  static void pass(milliseconds time) { std::this_thread::sleep_for(time); }

  std::atomic<int> ends_ = 0;
  DeadRankWatch watch_{[] { return asked.load(); }, [this] { ++ends_; }, kPatience};
};

TEST_F(DeadRankWatchTest, EndsAWaitThatGoesOnAfterASignal) {
  asked = true;
  const WaitForRanks waits;
  pass(kPatience / 4);
  EXPECT_EQ(ends_, 0);
  pass(4 * kPatience);
  EXPECT_EQ(ends_, 1);
}

/// Of which the inner ones are short.
TEST_F(DeadRankWatchTest, CountsTheOuterOfTwoWaits) {
  asked = true;
  const WaitForRanks outer;
  for (int i = 0; i < 50; ++i) {
    const WaitForRanks inner;
    pass(kPatience / 10);
  }
  EXPECT_EQ(ends_, 1);
}

TEST_F(DeadRankWatchTest, LetsAWaitGoOnWithoutASignal) {
  const WaitForRanks waits;
  pass(4 * kPatience);
  EXPECT_EQ(ends_, 0);
}

/// The step is computed, however long it takes.
TEST_F(DeadRankWatchTest, LetsWorkAndShortWaitsGoOnAfterASignal) {
  asked = true;
  for (int i = 0; i < 20; ++i) {
    pass(kPatience / 10);
    const WaitForRanks waits;
    pass(kPatience / 10);
  }
  EXPECT_EQ(ends_, 0);
}

}  // namespace
}  // namespace miniqat::distributed::dead_rank_watch_test
