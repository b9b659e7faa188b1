#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "core/text/error.h"

namespace miniqat::optim::schedule_test {
namespace {

std::string error_of(std::string_view name, const ScheduleOptions& options) {
  try {
    make_schedule(name, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_error(std::string_view name, const ScheduleOptions& options, const std::string& part) {
  const std::string text = error_of(name, options);
  EXPECT_NE(text.find(part), std::string::npos) << '"' << text << "\" lacks \"" << part << '"';
}

TEST(Schedule, ConstantIsOneForever) {
  for (const Schedule& schedule : {Schedule(), make_schedule("constant")})
    for (const std::int64_t step : {1, 2, 1000000}) EXPECT_EQ(schedule.factor(step), 1);
}

TEST(Schedule, StepFallsAfterEveryFullPeriod) {
  const Schedule schedule = make_schedule("step", {.every = 3, .factor = 0.5});
  const double expected[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.25};
  for (int step = 1; step <= 7; ++step) EXPECT_EQ(schedule.factor(step), expected[step - 1]) << step;
}

TEST(Schedule, ExponentialFallsByTheFactorInEveryPeriodAndSmoothlyBetween) {
  const Schedule schedule = make_schedule("exponential", {.every = 4, .factor = 0.25});
  EXPECT_EQ(schedule.factor(1), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(3), 0.5);
  EXPECT_DOUBLE_EQ(schedule.factor(5), 0.25);
  EXPECT_DOUBLE_EQ(schedule.factor(9), 0.0625);
}

TEST(Schedule, CosineFallsToItsFloorAndStaysThere) {
  const Schedule schedule = make_schedule("cosine", {.total_steps = 8, .floor = 0.2});
  EXPECT_EQ(schedule.factor(1), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(3), 0.2 + 0.8 * (1 + std::numbers::sqrt2 / 2) / 2);
  EXPECT_DOUBLE_EQ(schedule.factor(5), 0.6);
  EXPECT_GT(schedule.factor(8), 0.2);
  EXPECT_DOUBLE_EQ(schedule.factor(9), 0.2);
  EXPECT_DOUBLE_EQ(schedule.factor(1000), 0.2);
}

TEST(Schedule, WarmUpClimbsLinearlyThenTheScheduleBegins) {
  ScheduleOptions options = {.warmup_steps = 4, .every = 2, .factor = 0.1, .total_steps = 14};
  for (const std::string_view name : schedule_names()) {
    const Schedule schedule = make_schedule(name, options);
    for (int step = 1; step <= 4; ++step) EXPECT_EQ(schedule.factor(step), step / 4.0) << name << step;
    EXPECT_EQ(schedule.factor(5), 1) << name;
  }
  EXPECT_EQ(make_schedule("step", options).factor(6), 1);
  EXPECT_DOUBLE_EQ(make_schedule("step", options).factor(7), 0.1);
  EXPECT_DOUBLE_EQ(make_schedule("exponential", options).factor(6), std::sqrt(0.1));
  EXPECT_DOUBLE_EQ(make_schedule("cosine", options).factor(10), 0.5);
  EXPECT_NEAR(make_schedule("cosine", options).factor(15), 0, 1e-15);
  options.warmup_steps = 1;
  EXPECT_EQ(make_schedule("constant", options).factor(1), 1);
}

TEST(Schedule, WarmUpClimbsFromItsStart) {
  const Schedule schedule = make_schedule("constant", {.warmup_steps = 3, .warmup_start = 0.25});
  const double expected[] = {0.5, 0.75, 1, 1};
  for (int step = 1; step <= 4; ++step) EXPECT_DOUBLE_EQ(schedule.factor(step), expected[step - 1]) << step;
}

TEST(Schedule, NoStepComesBeforeTheFirst) {
  for (const std::int64_t step : {0, -1}) try {
      ADD_FAILURE() << Schedule().factor(step);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "steps are counted from 1, is " + std::to_string(step));
    }
}

TEST(Schedule, UnknownNamesListTheKnownOnes) {
  expect_error("linear", {}, "unknown schedule \"linear\"; known are constant, step, exponential, cosine");
  EXPECT_NE(error_of("", {}), "");
  EXPECT_NE(error_of("Cosine", {.total_steps = 1}), "");
}

TEST(Schedule, OptionsOutOfRangeAreNamedWithTheirValue) {
  const double nan = std::nan("");
  expect_error("constant", {.warmup_steps = -1}, "warmup_steps must not be negative, is -1");
  for (const double start : {-0.1, 1.0, nan, HUGE_VAL})
    expect_error("constant", {.warmup_start = start}, "warmup_start must be in [0, 1)");
  for (const char* name : {"step", "exponential"}) {
    expect_error(name, {}, "every must be at least 1 step, is 0");
    expect_error(name, {.every = -2}, "is -2");
    for (const double factor : {0.0, -0.1, 1.1, nan, HUGE_VAL})
      expect_error(name, {.every = 1, .factor = factor}, "factor");
  }
  expect_error("cosine", {}, "total_steps must exceed warmup_steps 0, is 0");
  expect_error("cosine", {.warmup_steps = 5, .total_steps = 5}, "warmup_steps 5, is 5");
  for (const double floor : {-0.1, 1.1, nan, HUGE_VAL})
    expect_error("cosine", {.total_steps = 9, .floor = floor}, "floor");
  // What a kind doesn't read is not checked.
  EXPECT_EQ(error_of("constant", {.every = -1, .factor = nan, .total_steps = -1, .floor = nan}), "");
}

}  // namespace
}  // namespace miniqat::optim::schedule_test
