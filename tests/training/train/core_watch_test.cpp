#include "training/train/core_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace miniqat::training::core_watch_test {
namespace {

struct Warnings : RunObserver {
  std::vector<std::string> texts;
  void warn(const std::string& text) override { texts.push_back(text); }
};

TEST(CoreWatch, WarnsOnceWhenMuchOfSomeSecondsWasWaiting) {
  Warnings warnings;
  CoreWatch watch(warnings, 100, 5);
  watch.after_step(102.9, 7.9);
  EXPECT_TRUE(warnings.texts.empty()) << "too early";
  watch.after_step(104, 6);
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_NE(warnings.texts[0].find("25% of the last 4 seconds"), std::string::npos) << warnings.texts[0];
  EXPECT_NE(warnings.texts[0].find("--threads N"), std::string::npos);
  watch.after_step(110, 12);
  EXPECT_EQ(warnings.texts.size(), 1u);
}

TEST(CoreWatch, LooksAtEachStretchByItself) {
  Warnings warnings;
  CoreWatch watch(warnings, 0, 0);
  for (int second = 1; second <= 40; ++second) watch.after_step(second, 0.05 * second);
  EXPECT_TRUE(warnings.texts.empty()) << "a twentieth";
  watch.after_step(44, 2 + 0.9);
  EXPECT_EQ(warnings.texts.size(), 1u) << "all before counts no longer";
}

}  // namespace
}  // namespace miniqat::training::core_watch_test
