#include "core/team/team_load.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace miniqat::team_load_test {
namespace {

using std::chrono::milliseconds;

class TeamLoadTest : public ::testing::Test {
 protected:
  /// Of `all` milliseconds the last `lost` went into waiting for one of `threads` threads.
  void pass(int all, int lost, int threads = 2) {
    now_ += milliseconds(all);
    load_.add_wait(now_, milliseconds(lost), threads);
  }
  /// For how many milliseconds from now on.
  int alone_for() {
    int length = 0;
    for (; load_.is_alone_at(now_); ++length) now_ += milliseconds(1);
    return length;
  }

  TeamLoad load_;
  TeamLoad::Clock::time_point now_ = TeamLoad::Clock::now();
};

TEST_F(TeamLoadTest, WithoutWaitsTheWorkersCompute) { EXPECT_FALSE(load_.is_alone()); }

TEST_F(TeamLoadTest, OneLossSaysLittle) {
  pass(4, 4);
  EXPECT_FALSE(load_.is_alone());
  pass(100, 4);
  EXPECT_FALSE(load_.is_alone()) << "the first one is long ago";
}

TEST_F(TeamLoadTest, AThirdOfTheTimeIsMoreThanASecondThreadBrings) {
  for (int i = 0; i < 4; ++i) pass(10, 2);
  EXPECT_FALSE(load_.is_alone()) << "a fifth";
  for (int i = 0; i < 4; ++i) pass(10, 4);
  EXPECT_TRUE(load_.is_alone());
}

TEST_F(TeamLoadTest, ManyThreadsAreWorthMuchWaiting) {
  for (int i = 0; i < 8; ++i) pass(10, 7, 16);
  EXPECT_FALSE(load_.is_alone());
  for (int i = 0; i < 8; ++i) pass(20, 20, 16);
  EXPECT_TRUE(load_.is_alone());
}

TEST_F(TeamLoadTest, AsksTheWorkersAgainLessAndLess) {
  pass(30, 30);
  int before = alone_for();
  EXPECT_EQ(before, 50);
  EXPECT_FALSE(load_.is_alone());
  for (int i = 0; i < 10; ++i) {
    pass(30, 30);
    const int length = alone_for();
    EXPECT_EQ(length, std::min(2 * before, 1600));
    before = length;
  }
  pass(2000, 1);
  pass(30, 30);
  EXPECT_EQ(alone_for(), 50) << "it was quiet in between";
}

TEST_F(TeamLoadTest, CountsTheTimeAlone) {
  const auto alone = [&] { return load_.alone_until(now_); };
  EXPECT_EQ(alone(), milliseconds(0));
  pass(30, 30);
  now_ += milliseconds(20);
  EXPECT_EQ(alone(), milliseconds(20)) << "so far";
  pass(10, 10);
  EXPECT_EQ(alone(), milliseconds(30)) << "a wait meanwhile";
  alone_for();
  const auto all = alone();
  now_ += milliseconds(1000);
  EXPECT_EQ(alone(), all) << "no longer alone";
  pass(30, 30);
  now_ += milliseconds(1000);
  EXPECT_EQ(alone(), all + milliseconds(50)) << "nobody asked since its end";
}

TEST_F(TeamLoadTest, ForgetsAllButTheTimeAlone) {
  for (int i = 0; i < 5; ++i) {
    pass(30, 30);
    alone_for();
  }
  const auto alone = load_.alone_until(now_);
  pass(30, 30);
  load_.forget(now_);
  EXPECT_FALSE(load_.is_alone());
  EXPECT_EQ(load_.alone_until(now_), alone);
  pass(30, 30);
  EXPECT_EQ(alone_for(), 50) << "as at the first time";
}

}  // namespace
}  // namespace miniqat::team_load_test
