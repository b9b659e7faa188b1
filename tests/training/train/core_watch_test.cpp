#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/team/team_load.h"
#include "training/train/watches.h"

namespace miniqat::training::core_watch_test {
namespace {

struct Warnings : RunObserver {
  std::vector<std::string> texts;
  void warn(const std::string& text) override { texts.push_back(text); }
};

TEST(CoreWatch, WarnsOnceWhenMuchOfSomeSecondsWasWaiting) {
  Warnings warnings;
  CoreWatch watch(warnings, 100, 5, {.threads = 2, .cores = 2, .quota = {}});
  watch.look(102.9, 7.9);
  EXPECT_TRUE(warnings.texts.empty()) << "too early";
  watch.look(104, 6);
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_NE(warnings.texts[0].find("for 25% of the last 4 seconds"), std::string::npos) << warnings.texts[0];
  EXPECT_NE(warnings.texts[0].find("other programs use the cores; fewer --threads N"), std::string::npos);
  watch.look(110, 12);
  EXPECT_EQ(warnings.texts.size(), 1u);
}

TEST(CoreWatch, LooksAtEachStretchByItself) {
  Warnings warnings;
  CoreWatch watch(warnings, 0, 0, {.threads = 2, .cores = 2, .quota = {}});
  for (int second = 1; second <= 40; ++second) watch.look(second, 0.05 * second);
  EXPECT_TRUE(warnings.texts.empty()) << "a twentieth";
  watch.look(44, 2 + 0.9);
  EXPECT_EQ(warnings.texts.size(), 1u) << "all before counts no longer";
}

/// The warning after three seconds of steps of 4 ms, in which a thread waits 2 ms for one without a core unless it
/// computes alone.
TEST(CoreWatch, WarnsOfARunThatComputesAlone) {
  using std::chrono::milliseconds;
  const auto seconds = [](TeamLoad::Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  for (const bool has_neighbours : {true, false}) {
    Warnings warnings;
    CoreWatch watch(warnings, 0, 0, {.threads = 2, .cores = 2, .quota = {}});
    TeamLoad load;
    const TeamLoad::Clock::time_point begin = TeamLoad::Clock::now();
    TeamLoad::Clock::time_point now = begin;
    TeamLoad::Clock::duration waited{};
    while (now - begin < milliseconds(3100)) {
      const bool alone = load.is_alone_at(now);
      now += milliseconds(4);
      if (!alone && has_neighbours) {
        waited += milliseconds(2);
        load.add_wait(now, milliseconds(2), 2);
      }
      watch.look(seconds(now - begin), seconds(waited + load.alone_until(now)));
    }
    EXPECT_LT(waited, milliseconds(300)) << "waits alone would not show it";
    EXPECT_EQ(warnings.texts.size(), has_neighbours ? 1u : 0u);
  }
}

/// The warning after three seconds, `waited` of which went into waiting; "" without one.
std::string warning_of(const CoreLimits& limits, double waited) {
  Warnings warnings;
  CoreWatch(warnings, 0, 0, limits).look(3, waited);
  return warnings.texts.empty() ? "" : warnings.texts[0];
}

TEST(CoreWatch, NamesTheCause) {
  EXPECT_EQ(warning_of({.threads = 6, .cores = 2, .quota = {}}, 0),
            "note: 6 threads share 2 cores and wait for one another; --threads 2 for the next run may be faster");
  EXPECT_EQ(warning_of({.threads = 6, .cores = 8, .quota = 1.5}, 0),
            "note: 6 threads share a CPU quota of 1.5 cores and wait for one another; --threads 2 for the next run may "
            "be faster");
  EXPECT_EQ(warning_of({.threads = 2, .cores = 8, .quota = 1.5}, 0), "") << "all of the quota takes two threads";
  EXPECT_NE(warning_of({.threads = 2, .cores = 8, .quota = 1.5}, 1).find("no core: a CPU quota of 1.5 cores allows"),
            std::string::npos);
  EXPECT_NE(warning_of({.threads = 2, .cores = 8, .quota = 2}, 1).find("other programs"), std::string::npos);
  EXPECT_EQ(warning_of({.threads = 2, .cores = 2, .quota = {}}, 0), "");
}

}  // namespace
}  // namespace miniqat::training::core_watch_test
