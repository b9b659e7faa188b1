// Comparisons of files whose outcome is known, and the statistics behind them.

#include "bench/results/comparison.h"

#include <gtest/gtest.h>

#include "bench/measure/rounds.h"

namespace miniqat::bench::comparison_test {
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

// Probabilities of a sign test by hand: of 6 values all are on one side of the median in 2 of 64 cases, of 9 all or all
// but one in 20 of 512.
TEST(MedianInterval, HasTheOrderThatASignTestAllows) {
  EXPECT_FALSE(median_interval({}, 0.95));
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}, 0.95)) << "2 of 32 are too many";
  const auto interval = [](const std::vector<double>& values, double confidence) {
    const auto found = median_interval(values, confidence);
    return found ? std::vector<double>{found->low, found->high} : std::vector<double>{};
  };
  EXPECT_EQ(interval({1, 2, 3, 4, 5}, 0.93), (std::vector<double>{1, 5}));
  EXPECT_EQ(interval({6, 2, 4, 3, 5, 1}, 0.95), (std::vector<double>{1, 6}));
  EXPECT_EQ(interval({9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.95), (std::vector<double>{2, 8}));
  // Places 86 and 115 of 200, by the normal approximation 100.5 -+ 0.98 * sqrt(200) rounded outwards.
  std::vector<double> many;
  for (int i = 1; i <= 200; ++i) many.push_back(i);
  EXPECT_EQ(interval(many, 0.95), (std::vector<double>{86, 115}));
}

TEST(Comparison, AnIntervalIsFasterSlowerNoiseOrOpen) {
  EXPECT_EQ(verdict_of_ratio(Interval{1.06, 1.2}), Verdict::kFaster);
  EXPECT_EQ(verdict_of_ratio(Interval{0.8, 0.95}), Verdict::kSlower);
  EXPECT_EQ(verdict_of_ratio(Interval{0.96, 1.04}), Verdict::kNoise);
  EXPECT_EQ(verdict_of_ratio(Interval{1.04, 1.2}), Verdict::kOpen);
  EXPECT_EQ(verdict_of_ratio(Interval{0.9, 1.1}), Verdict::kOpen);
  EXPECT_EQ(verdict_of_ratio({}), Verdict::kTooFewRounds);
}

/// A machine whose speed wanders: times of what would take `seconds`.
std::vector<double> on_a_busy_machine(double seconds, int rounds = 21) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(seconds * (1 + (i * 7 % 11) / 4.0) * (i % 5 == 0 ? 3 : 1));
  return times;
}

TEST(Comparison, KernelsThatTookTurnsAreComparedByTheirRatios) {
  const std::vector<double> ours = on_a_busy_machine(1), faster = on_a_busy_machine(0.8);
  std::vector<double> same = ours;
  for (std::size_t i = 0; i < same.size(); ++i) same[i] *= 1 + 0.01 * static_cast<double>(i % 3);
  EXPECT_EQ(compare({"", "", {record("x", ours, false)}}, {"", "", {record("x", faster, false)}}).cases[0].verdict,
            Verdict::kNotQuiet);
  const BenchFile file{"",
                       "",
                       {record("miniqat", ours, false),
                        {"memcpy", "libc", ours, false, "", true},
                        record("new", faster, false),
                        record("same", same, false)}};
  const BenchComparison found = compare_kernels(file);
  ASSERT_EQ(found.cases.size(), 3u);
  EXPECT_EQ(found.cases[0].by_b, "new");
  EXPECT_EQ(found.cases[0].verdict, Verdict::kFaster);
  EXPECT_NEAR(found.cases[0].speed, 1.25, 1e-9);
  EXPECT_EQ(found.cases[0].turns, 21u);
  EXPECT_NEAR(found.cases[0].interval->low, 1.25, 1e-9);
  EXPECT_EQ(found.cases[1].verdict, Verdict::kNoise) << "miniqat -> same";
  EXPECT_EQ(found.cases[2].by_a, "new");
  EXPECT_EQ(found.cases[2].verdict, Verdict::kSlower);
  EXPECT_EQ(compare_kernels({"", "", {record("a", ours), record("b", {1, 2})}}).cases.size(), 0u) << "not in turns";
  const BenchComparison few = compare_kernels({"", "", {record("a", {1, 1, 1}), record("b", {3, 3, 3})}});
  EXPECT_EQ(few.cases[0].verdict, Verdict::kTooFewRounds);
}

TEST(Comparison, FilesInTurnsAreComparedByTheRatiosOfTheirMedians) {
  const auto files = [](double speed, int count) {
    std::vector<BenchFile> all;
    // Each file finds another machine.
    for (int i = 0; i < count; ++i)
      all.push_back({"", "", {record("x", on_a_busy_machine((1 + i * 5 % 7) / speed), false)}});
    return all;
  };
  const auto verdict = [&](double speed, int count) {
    const BenchComparison found = compare_turns(files(1, count), files(speed, count));
    EXPECT_EQ(found.cases.size(), 1u);
    EXPECT_EQ(found.cases[0].turns, static_cast<std::size_t>(count));
    return found.cases[0].verdict;
  };
  EXPECT_EQ(verdict(1.2, 6), Verdict::kFaster);
  EXPECT_EQ(verdict(0.8, 6), Verdict::kSlower);
  EXPECT_EQ(verdict(1.02, 6), Verdict::kNoise);
  EXPECT_EQ(verdict(1.2, 5), Verdict::kTooFewRounds);
  // The machines of a pair differ, too.
  std::vector<BenchFile> a = files(1, 7), b = files(1.2, 7);
  for (std::size_t i = 0; i < b.size(); i += 2)
    for (double& seconds : b[i].records[0].rounds) seconds *= 2;
  EXPECT_EQ(compare_turns(a, b).cases[0].verdict, Verdict::kOpen);
  b[3].records.clear();
  EXPECT_EQ(compare_turns(a, b).cases[0].turns, 6u) << "a pair that lacks the case";
  a = files(1, 7);
  b = files(1.2, 7);
  b[0].records.clear();
  const BenchComparison later = compare_turns(a, b);
  ASSERT_EQ(later.cases.size(), 1u) << "the first pair lacks the case";
  EXPECT_EQ(later.cases[0].turns, 6u);
  EXPECT_EQ(later.cases[0].verdict, Verdict::kFaster);
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
}  // namespace miniqat::bench::comparison_test
