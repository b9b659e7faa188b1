#include <gtest/gtest.h>

#include <vector>

#include "cli/display/run_display.h"

namespace miniqat::cli::step_lines_test {
namespace {

using Steps = std::vector<std::int64_t>;

/// The steps that get a line in a run whose steps take so long.
Steps printed(std::int64_t total, std::int64_t steps_per_epoch, std::chrono::milliseconds a_step) {
  StepLines lines;
  Steps steps;
  for (std::int64_t step = 1; step <= total; ++step)
    if (lines.is_due(step, total, steps_per_epoch, StepLines::Time(a_step * step))) steps.push_back(step);
  return steps;
}

TEST(StepLines, ALongRunHasFourAnEpoch) {
  EXPECT_EQ(printed(16, 8, std::chrono::seconds(2)), (Steps{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(printed(14, 7, std::chrono::seconds(2)), (Steps{2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(printed(3, 1, std::chrono::seconds(2)), (Steps{1, 2, 3}));
}

TEST(StepLines, AShortRunHasOneASecondAndTheLast) {
  EXPECT_EQ(printed(5000, 8, std::chrono::milliseconds(1)), (Steps{2, 1002, 2002, 3002, 4002, 5000}));
  EXPECT_EQ(printed(12, 1, std::chrono::milliseconds(1)), (Steps{1, 12}));
}

}  // namespace
}  // namespace miniqat::cli::step_lines_test
