#include "training/settings/train_settings.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "tests/errors.h"
#include "training/settings/given_settings.h"

namespace miniqat::training::train_settings_test {
namespace {

using Change = std::function<void(TrainSettings&)>;

std::string error_with(const Change& change) {
  // As in the program, where denormals are 0.
  const ComputeScope computing;
  TrainSettings settings;
  change(settings);
  return testing::error_of([&] { check(settings); });
}

TEST(TrainSettings, EachLimitIsNamedWithTheNumberBeyondIt) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](auto& s) { s.validation = -1; }, "--validation must not be negative, got -1"},
      {[](auto& s) { s.reestimate = -1; }, "--reestimate must not be negative, got -1"},
      {[](auto& s) { s.steps = -1; }, "--steps must be in 0..1099511627776, got -1"},
      {[](auto& s) { s.steps = kMostSteps + 1; }, "--steps must be in 0..1099511627776, got 1099511627777"},
      {[](auto& s) { s.warmup_steps = kMostSteps + 1; },
       "--warmup-steps must be at most 1099511627776, got 1099511627777"},
      {[](auto& s) { s.epochs = 0; }, "--epochs must be in 1..1000000, got 0"},
      {[](auto& s) { s.batch_size = 65537; }, "--batch-size must be in 1..65536, got 65537"},
      {[](auto& s) { s.threads_per_shard = 0; }, "--threads-per-shard must be in 1..1024, got 0"},
      {[](auto& s) { s.threads = 1025; }, "--threads must be in 0..1024, got 1025"},
      {[](auto& s) { s.seed = -1; }, "--seed must be in 0..1099511627776, got -1"},
      {[](auto& s) { s.scale_learning_rate = 65537; }, "--scale-learning-rate must be in 0..65536, got 65537"},
      {[](auto& s) { s.log_every = 0; }, "--log-every must be at least 1, got 0"},
      {[](auto& s) { s.width = 0; }, "--width must be in (0, 16], got 0"},
      {[](auto& s) { s.width = 16.5; }, "--width must be in (0, 16], got 16.5"},
      {[](auto& s) { s.width = kNan; }, "--width must be in (0, 16], got nan"},
      {[](auto& s) { s.label_smoothing = 1; }, "--label-smoothing must be in [0, 1), got 1"},
      {[](auto& s) { s.dampening = -0.1; }, "--dampening must be at least 0, got -0.1"},
      {[](auto& s) { s.dampening = kInfinity; }, "--dampening must be at least 0, got inf"},
      {[](auto& s) { s.huber = 1e-50; }, "--huber is 1e-50, which is 0 in float32: give 0 or at least 1.17549e-38"},
      {[](auto& s) { s.huber = 1e50; }, "--huber is 1e+50, which is infinite in float32"}};
  for (const auto& [change, text] : cases) EXPECT_EQ(error_with(change), text);
}

TEST(TrainSettings, WhatIsZeroInFloat32StaysSoInARunOfAnEarlierVersion) {
  const Change tiny = [](auto& s) {
    s.of_a_run = true;
    s.learning_rate = s.weight_decay = s.range_learning_rate = s.momentum = s.label_smoothing = s.dampening = 1e-50;
  };
  EXPECT_EQ(error_with(tiny), "");
  for (const char* name : {"learning_rate", "momentum"})
    EXPECT_NE(error_with([&](auto& s) {
                tiny(s);
                s.given = {name};
              }),
              "")
        << "asked for now: " << name;
}

TEST(TrainSettings, TheLimitsThemselvesAreRight) {
  EXPECT_EQ(error_with([](auto& s) {
              s.validation = s.seed = s.threads = 0;
              s.reestimate = 0;
              s.batch_size = 65536;
              s.steps = kMostSteps;
              s.threads_per_shard = 1024;
              s.width = 16;
              s.dampening = s.label_smoothing = 0;
              s.log_every = 1;
            }),
            "");
}

/// Nothing else changes for runs of before: whoever asked for a task found such answers, or did not begin.
TEST(TrainSettings, ATaskSaysWhatAnswersAreWhereThatIsOpen) {
  using enum datasets::Answers;
  const auto answers = [](const char* task, datasets::Answers asked, bool of_a_run = false, bool guessed = false) {
    TrainSettings settings;
    settings.task = task;
    settings.answers = asked;
    settings.of_a_run = of_a_run;
    settings.task_is_guessed = guessed;
    return number_options(settings).answers;
  };
  for (const char* task : {"regress", "multilabel"}) {
    EXPECT_EQ(answers(task, kAuto), kTargets) << task;
    EXPECT_EQ(answers(task, kAuto, true), kTargets) << task;
    EXPECT_EQ(answers(task, kAuto, true, true), kAuto) << "the data decide";
    EXPECT_EQ(testing::error_of([&] { answers(task, kClasses); }),
              concat("--answers classes does not go with --task ", task, ": leave one of the two out"));
  }
  for (const char* task : {"auto", "classify", "reconstruct"}) {
    EXPECT_EQ(answers(task, kAuto), kAuto) << task;
    EXPECT_EQ(answers(task, kClasses), kClasses) << task;
  }
  EXPECT_EQ(answers("reconstruct", kTargets), kTargets);
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { answers("classify", kTargets); }), {"--answers targets does"}));
  EXPECT_EQ(answers("classify", kTargets, true), kAuto) << "of a run on pictures, which took no notice";
}

}  // namespace
}  // namespace miniqat::training::train_settings_test
