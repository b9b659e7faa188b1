#include "quantize/calibrate/rounding_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/tensors/random.h"
#include "tests/thread_counts.h"

namespace miniqat::quantize::rounding_search_test {
namespace {

using Values = std::vector<float>;

/// Rows whose neighbours are the whole numbers around each value.
struct Problem {
  std::int64_t n = 0;
  Values moments = {};
  Values values = {};
  Values low = {};
  Values high = {};
  Values pull = {};

  RoundingRows rows() const { return {.values = values, .low = low, .high = high, .pull = pull}; }
  Values rounded() const { return round_rows(moments, n, rows()); }

  double error(std::int64_t row, const Values& chosen) const {
    double sum = 0;
    const auto e = [&](std::int64_t i) {
      return static_cast<double>(chosen[static_cast<std::size_t>(row * n + i)]) -
             static_cast<double>(values[static_cast<std::size_t>(row * n + i)]);
    };
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) sum += e(i) * moments[static_cast<std::size_t>(i * n + j)] * e(j);
      if (!pull.empty()) sum -= 2 * e(i) * pull[static_cast<std::size_t>(row * n + i)];
    }
    return sum;
  }
  Values nearest() const {
    Values chosen = values;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      chosen[i] = values[i] - low[i] < high[i] - values[i] ? low[i] : high[i];
    return chosen;
  }
  /// Of all choices.
  double least_error(std::int64_t row) const {
    double least = std::numeric_limits<double>::infinity();
    Values chosen = low;
    for (std::uint32_t choice = 0; choice < (1u << n); ++choice) {
      for (std::int64_t i = 0; i < n; ++i) {
        const auto place = static_cast<std::size_t>(row * n + i);
        chosen[place] = (choice >> i & 1) != 0 ? high[place] : low[place];
      }
      least = std::min(least, error(row, chosen));
    }
    return least;
  }
};

/// Second moments of inputs that are sums of `causes` others.
Problem random_problem(std::int64_t n, std::int64_t rows, std::int64_t causes, std::uint64_t seed) {
  Random random(seed);
  Problem problem{.n = n, .moments = Values(static_cast<std::size_t>(n * n))};
  Values mix(static_cast<std::size_t>(n * causes));
  for (float& value : mix) value = random.uniform(-1, 1);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float& moment = problem.moments[static_cast<std::size_t>(i * n + j)];
      for (std::int64_t k = 0; k < causes; ++k)
        moment += mix[static_cast<std::size_t>(i * causes + k)] * mix[static_cast<std::size_t>(j * causes + k)];
      if (i == j) moment += 0.01F;
    }
  for (std::int64_t i = 0; i < rows * n; ++i) {
    const float value = random.uniform(-3, 3);
    problem.values.push_back(value);
    problem.low.push_back(std::floor(value));
    problem.high.push_back(std::floor(value) + 1);
    problem.pull.push_back(random.uniform(-0.5, 0.5));
  }
  return problem;
}

TEST(RoundingSearch, GoesAgainstTheNearestWhereInputsGoTogether) {
  // Both down: 0.16 * 3.8 = 0.608. One up: 0.36 + 0.16 - 2 * 0.24 * 0.9 = 0.088.
  const Problem problem{.n = 2, .moments = {1, 0.9F, 0.9F, 1}, .values = {0.4F, 0.4F}, .low = {0, 0}, .high = {1, 1}};
  const Values rounded = problem.rounded();
  EXPECT_EQ(rounded[0] + rounded[1], 1);
  EXPECT_NEAR(problem.error(0, rounded), 0.088, 1e-6);
  EXPECT_NEAR(problem.error(0, problem.nearest()), 0.608, 1e-6);
}

TEST(RoundingSearch, PullMovesTheTarget) {
  // Alone, 0.4 goes down. With d = p / h = 0.6 / 4 the target is 0.55.
  Problem problem{.n = 1, .moments = {4}, .values = {0.4F, 0.4F}, .low = {0, 0}, .high = {1, 1}};
  EXPECT_EQ(problem.rounded(), (Values{0, 0}));
  problem.pull = {0.6F, 0.2F};
  EXPECT_EQ(problem.rounded(), (Values{1, 0}));
}

TEST(RoundingSearch, LeavesNumbersWithoutAChoice) {
  const Problem problem{
      .n = 3, .moments = {1, 1, 0, 1, 1.1F, 0, 0, 0, 0}, .values = {5, 0.4F, 2}, .low = {3, 0, 2}, .high = {3, 1, 2}};
  Problem damped = problem;
  damped.moments[8] = 0.01F;
  EXPECT_EQ(damped.rounded(), (Values{3, 1, 2}));
}

TEST(RoundingSearch, FindsWhatAllChoicesGive) {
  int optimal = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = random_problem(10, 4, 3, seed);
    const Values rounded = problem.rounded(), nearest = problem.nearest();
    for (std::size_t i = 0; i < rounded.size(); ++i)
      EXPECT_TRUE(rounded[i] == problem.low[i] || rounded[i] == problem.high[i]);
    for (std::int64_t row = 0; row < 4; ++row, ++all) {
      const double found = problem.error(row, rounded), least = problem.least_error(row);
      EXPECT_LE(found, problem.error(row, nearest) + 1e-5);
      optimal += found <= least + 1e-4 ? 1 : 0;
    }
  }
  EXPECT_GE(optimal, all * 9 / 10) << all;
}

TEST(RoundingSearch, HalvesTheErrorOfLargeProblems) {
  const Problem problem = random_problem(120, 70, 40, 7);
  const Values rounded = problem.rounded(), nearest = problem.nearest();
  double sum = 0, before = 0;
  for (std::int64_t row = 0; row < 70; ++row) {
    const double found = problem.error(row, rounded), usual = problem.error(row, nearest);
    EXPECT_LT(found, usual);
    sum += found;
    before += usual;
  }
  EXPECT_LT(sum, before / 2);
}

TEST(RoundingSearch, RowsAreAloneAndThreadsDoNotMatter) {
  const Problem problem = random_problem(20, 70, 5, 9);
  const Values together = problem.rounded();
  testing::with_thread_counts([&] { EXPECT_EQ(problem.rounded(), together); });
  for (const std::int64_t row : {0, 31, 32, 69}) {
    Problem one{.n = 20, .moments = problem.moments};
    const auto part = [&](const Values& of) { return Values(of.begin() + row * 20, of.begin() + (row + 1) * 20); };
    one.values = part(problem.values);
    one.low = part(problem.low);
    one.high = part(problem.high);
    one.pull = part(problem.pull);
    EXPECT_NEAR(problem.error(row, together), one.error(0, one.rounded()), 1e-3) << row;
  }
}

TEST(RoundRows, AsksBetweenRowsWhetherToStop) {
  const Problem problem = random_problem(8, 40, 3, 5);
  std::atomic<int> asked = 0;
  round_rows(problem.moments, 8, {.values = problem.values, .low = problem.low, .high = problem.high}, [&] {
    ++asked;
    return false;
  });
  EXPECT_GE(asked, 40) << "not once for each block of rows";
  asked = 0;
  round_rows(problem.moments, 8, {.values = problem.values, .low = problem.low, .high = problem.high}, [&] {
    ++asked;
    return true;
  });
  EXPECT_LE(asked, 2) << "a block each";
}

}  // namespace
}  // namespace miniqat::quantize::rounding_search_test
