#include <gtest/gtest.h>

#include <atomic>

#include "core/text/error.h"
#include "distributed/tensor_sums.h"

namespace miniqat::distributed::periodic_call_test {
namespace {

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
}  // namespace miniqat::distributed::periodic_call_test
