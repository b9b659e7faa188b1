// Comparisons of files whose outcome is known, and the statistics behind them.

#include "benchmarks/suite/results/comparison.h"

#include <gtest/gtest.h>

#include "benchmarks/suite/results/rank_test.h"

namespace miniqat::benchmarks::comparison_test {
namespace {

std::vector<double> around(double center, double spread, int count = 9) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(center * (1 + spread * (i - count / 2) / count));
  return values;
}

BenchRecord record(const std::string& by, std::vector<double> rounds, bool quiet = true) {
  return {"forward", by, std::move(rounds), quiet, "", false};
}

TEST(RankTest, KnownProbabilities) {
  EXPECT_NEAR(rank_test({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 0.0122, 1e-4);
  EXPECT_NEAR(rank_test({1, 2, 3}, {4, 5, 6}), 0.0809, 1e-4);
  EXPECT_EQ(rank_test({1, 1, 1}, {1, 1, 1}), 1);
  EXPECT_EQ(rank_test({}, {1}), 1);
  EXPECT_GT(rank_test({1, 3, 5, 7, 9}, {2, 4, 6, 8, 10}), 0.5);
  EXPECT_EQ(rank_test({1, 2, 2, 5}, {2, 3, 4}), rank_test({2, 3, 4}, {1, 2, 2, 5}));
}

TEST(Comparison, OnlyClearDifferencesAreBeyondNoise) {
  const BenchRecord base = record("x", around(1, 0.02));
  EXPECT_EQ(verdict_of(base, record("x", around(0.5, 0.02))), Verdict::kFaster);
  EXPECT_EQ(verdict_of(base, record("x", around(2, 0.02))), Verdict::kSlower);
  EXPECT_EQ(verdict_of(base, base), Verdict::kNoise);
  // Clear ranks, but less than a repetition may differ by.
  EXPECT_EQ(verdict_of(base, record("x", around(1.04, 0.02))), Verdict::kNoise);
  // The quartiles touch.
  EXPECT_EQ(verdict_of(record("x", around(1, 0.5)), record("x", around(1.2, 0.5))), Verdict::kNoise);
  // Too few rounds, also where the ranks are clear.
  EXPECT_LT(rank_test(around(1, 0.02, 20), around(2, 0.02, 4)), kRankLevel);
  EXPECT_EQ(verdict_of(record("x", around(1, 0.02, 20)), record("x", around(2, 0.02, 4))), Verdict::kTooFewRounds);
  EXPECT_EQ(verdict_of(record("x", around(1, 0.02, 4)), record("x", around(2, 0.02, 20))), Verdict::kTooFewRounds);
  EXPECT_EQ(verdict_of(record("x", around(1, 0.02, 5)), record("x", around(2, 0.02, 5))), Verdict::kSlower);
  EXPECT_EQ(verdict_of(record("x", around(1, 0.02, 3)), record("x", around(2, 0.02, 3))), Verdict::kTooFewRounds);
  EXPECT_EQ(verdict_of(base, record("x", around(2, 0.02), false)), Verdict::kNotQuiet);
}

TEST(Comparison, MatchesSameNamesFirstAndTheLastOnesWhateverTheirNames) {
  const std::vector<double> rounds = around(1, 0.02);
  const BenchFile a{
      "", "", {record("miniqat", rounds), record("old", rounds), {"copy", "libc", rounds, true, "", false}}};
  const BenchFile b{
      "",
      "",
      {record("new", around(0.5, 0.02)), record("miniqat", rounds), {"read", "miniqat", rounds, true, "", false}}};
  const BenchComparison all = compare(a, b);
  ASSERT_EQ(all.cases.size(), 2u);
  EXPECT_EQ(all.cases[0].by_b, "miniqat");
  EXPECT_EQ(all.cases[1].by_a, "old");
  EXPECT_EQ(all.cases[1].by_b, "new");
  EXPECT_DOUBLE_EQ(all.cases[1].speed, 2);
  EXPECT_EQ(all.cases[1].verdict, Verdict::kFaster);
  EXPECT_EQ(all.only_a, std::vector<std::string>{"copy by libc"});
  EXPECT_EQ(all.only_b, std::vector<std::string>{"read by miniqat"});
  // Of two that are left nobody knows which is which.
  const BenchFile two{"", "", {record("p", rounds), record("q", rounds)}};
  EXPECT_EQ(compare(BenchFile{"", "", {record("old", rounds)}}, two).cases.size(), 0u);
}

TEST(Comparison, AChangeOfMemorysSpeedIsNotTheKernels) {
  const auto file = [](const std::string& cpu, double kernel, double copy) {
    return BenchFile{"",
                     cpu,
                     {{"forward", "x", around(kernel, 0.02), true, "9 elements", false},
                      {"memcpy", "libc", around(copy, 0.02), true, "9 elements", true}}};
  };
  const auto verdict = [](const BenchFile& a, const BenchFile& b) { return compare(a, b).cases[0].verdict; };
  const BenchFile base = file("m", 1, 1);
  EXPECT_EQ(verdict(base, file("m", 1.2, 1.2)), Verdict::kAsMemcpy);
  EXPECT_EQ(verdict(base, file("m", 0.8, 0.8)), Verdict::kAsMemcpy);
  EXPECT_EQ(verdict(base, file("m", 1.2, 1)), Verdict::kSlower);
  EXPECT_EQ(verdict(base, file("m", 1.2, 0.8)), Verdict::kSlower);
  EXPECT_EQ(verdict(base, file("m", 0.5, 0.8)), Verdict::kFaster);
  EXPECT_EQ(verdict(base, file("other", 1.2, 1.2)), Verdict::kSlower) << "another machine is slower";
  EXPECT_EQ(compare(base, file("m", 1.2, 1.2)).cases[1].verdict, Verdict::kSlower) << "memcpy itself";
}

TEST(Rounds, SteadyOnesRepeat) {
  EXPECT_TRUE(is_steady(around(1, 0.02)));
  EXPECT_FALSE(is_steady(around(1, 0.5)));
  EXPECT_FALSE(is_steady({1, 1, 1, 1, 1.2, 1.2, 1.2, 1.2}));
}

TEST(Rounds, MoreAreTakenWhileTheyAreNotSteady) {
  double value = 1;
  const auto noisy =
      measure_in_turns(1, {.seconds = 0.01, .longest_stretch = 3}, [&](std::size_t) { return value *= -2; });
  const auto steady = measure_in_turns(1, {.seconds = 0.01, .longest_stretch = 3}, [](std::size_t) { return 1.0; });
  EXPECT_GT(noisy[0].size(), 200u);
  EXPECT_LE(steady[0].size(), 200u);
}

}  // namespace
}  // namespace miniqat::benchmarks::comparison_test
