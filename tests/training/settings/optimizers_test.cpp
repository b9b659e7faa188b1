#include "training/settings/optimizers.h"

#include "tests/errors.h"
#include "tests/training/run_fixture.h"
#include "training/settings/given_settings.h"
#include "training/train/run_settings.h"

namespace miniqat::training::optimizers_test {
namespace {

using testing::error_of;
using testing::mentions;

/// Batches of 1,024 at a rate for 256.
TrainSettings large_batch() {
  TrainSettings settings;
  settings.batch_size = 1024;
  settings.learning_rate = 0.1;
  settings.scale_learning_rate = 256;
  return settings;
}

double rate(const TrainSettings& settings, std::int64_t step) {
  return make_optimizer(settings, {.steps = 100, .epoch = 4})->learning_rate(step);
}

TEST(ScaledRate, RisesFromTheGivenRateInFiveEpochs) {
  TrainSettings settings = large_batch();
  settings.schedule = "constant";
  // Goyal et al.: from eta to k eta, by the same amount in each step.
  for (const std::int64_t step : {1, 7, 19}) EXPECT_DOUBLE_EQ(rate(settings, step), 0.1 + 0.3 * step / 20);
  for (const std::int64_t step : {20, 21, 100}) EXPECT_DOUBLE_EQ(rate(settings, step), 0.4) << step;
  settings.warmup_steps = 2;
  EXPECT_DOUBLE_EQ(rate(settings, 1), 0.25);
  EXPECT_DOUBLE_EQ(rate(settings, 2), 0.4);
  settings.warmup_steps = 1;
  EXPECT_DOUBLE_EQ(rate(settings, 1), 0.4);
}

TEST(ScaledRate, TheScheduleBeginsAfterTheWarmUp) {
  TrainSettings settings = large_batch();
  EXPECT_DOUBLE_EQ(rate(settings, 21), 0.4);
  EXPECT_DOUBLE_EQ(rate(settings, 61), 0.2);
  settings.schedule = "step";
  settings.schedule_every = 10;
  EXPECT_DOUBLE_EQ(rate(settings, 30), 0.4);
  EXPECT_DOUBLE_EQ(rate(settings, 31), 0.04);
}

TEST(ScaledRate, ShardsDoNotMatter) {
  TrainSettings settings = large_batch(), slices = settings;
  slices.shards = 8;
  for (const std::int64_t step : {3, 20, 50}) EXPECT_EQ(rate(settings, step), rate(slices, step));
}

TEST(ScaledRate, ASmallerBatchTakesASmallerRateWithoutWarmUp) {
  TrainSettings settings = large_batch();
  settings.batch_size = 64;
  settings.schedule = "constant";
  EXPECT_DOUBLE_EQ(rate(settings, 1), 0.025);
  settings.warmup_steps = 2;
  EXPECT_DOUBLE_EQ(rate(settings, 1), 0.0125);
}

TEST(ScaledRate, ALineSaysWhatWasDone) {
  TrainSettings settings = large_batch();
  EXPECT_EQ(
      scaling_note(settings, 39),
      "learning rate: 0.1 for batches of 256, times 4 for batches of 1024: 0.4; warm-up from 0.1 in 5 epochs (195 "
      "steps)");
  settings.warmup_steps = 78;
  EXPECT_TRUE(mentions(scaling_note(settings, 39), {"warm-up from 0.1 in 2 epochs (78 steps)"}));
  settings.warmup_steps = 0;
  settings.batch_size = 128;
  settings.learning_rate.reset();
  EXPECT_EQ(scaling_note(settings, 39),
            "learning rate: 0.05 for batches of 256, times 0.5 for batches of 128: 0.025; no warm-up");
  settings.scale_learning_rate = 0;
  EXPECT_EQ(scaling_note(settings, 39), "");
}

TEST(ScaledRate, WhatCannotBeIsRefused) {
  TrainSettings settings = large_batch();
  EXPECT_EQ(error_of([&] { check(settings); }), "");
  EXPECT_TRUE(mentions(error_of([&] { make_optimizer(settings, {.steps = 20, .epoch = 4}); }),
                       {"--scale-learning-rate warms up in 5 epochs, which are 20 steps; the run has 20"}));
  settings.scale_learning_rate = -1;
  EXPECT_TRUE(mentions(error_of([&] { check(settings); }), {"--scale-learning-rate must be in 0..65536, got -1"}));
  settings.scale_learning_rate = 1;
  settings.optimizer = "adam";
  EXPECT_TRUE(mentions(error_of([&] { check(settings); }), {"--scale-learning-rate", "--optimizer adam"}));
}

class ScaledRun : public RunFixture {
 protected:
  struct Listener : RunObserver {
    void say(const std::string& text) override {
      if (text.starts_with("learning rate: ")) lines.push_back(text);
    }
    std::vector<std::string> lines;
  };
  /// Two slices of four, four steps an epoch: the warm-up ends with step 20.
  TrainSettings settings() const {
    TrainSettings settings = RunFixture::settings();
    settings.batch_size = 8;
    settings.shards = 2;
    settings.steps = 22;
    settings.learning_rate = 0.01;
    settings.scale_learning_rate = 2;
    return settings;
  }
};

TEST_F(ScaledRun, AStopInTheWarmUpOrAtItsEndChangesNoBit) {
  Listener listener;
  const testing::RunFiles whole = train_new("whole", settings(), listener);
  EXPECT_EQ(listener.lines, std::vector<std::string>{
                                "learning rate: 0.01 for batches of 2, times 4 for batches of 8: 0.04; warm-up from "
                                "0.01 in 5 epochs (20 steps)"});
  EXPECT_EQ(testing::json_of(path("whole/config.json")).at("scale_learning_rate"), 2);
  std::vector<double> rates;
  for (const nlohmann::json& line : whole.metrics)
    if (line.contains("learning_rate")) rates.push_back(line["learning_rate"].get<double>());
  ASSERT_EQ(rates.size(), 22u);
  EXPECT_DOUBLE_EQ(rates[9], 0.025);
  for (const std::int64_t stop : {7, 19, 20, 21}) {
    const RunDirectory run = RunDirectory::fresh(path(concat("stopped-", stop)), "none");
    train(settings(), run, {.stop_at = stop}, listener);
    const TrainSettings begun = begun_settings(run);
    train(begun, run, {.resume = true, .begun = begun}, listener);
    EXPECT_EQ(testing::files_of(run.path()).checkpoint, whole.checkpoint) << stop;
  }
  TrainSettings unscaled = settings();
  unscaled.scale_learning_rate = 0;
  EXPECT_NE(train_new("unscaled", unscaled, listener).checkpoint, whole.checkpoint);
}

// A longer run has the same warm-up.
TEST_F(ScaledRun, IsMadeLongerInTheWarmUp) {
  TrainSettings wanted = settings();
  wanted.schedule = "constant";
  RunObserver observer;
  const std::string whole = train_new("whole", wanted, observer).checkpoint;
  TrainSettings begun = wanted;
  begun.steps = 21;
  const RunDirectory run = RunDirectory::fresh(path("longer"), "none");
  train(begun, run, {.stop_at = 10}, observer);
  train(wanted, run, {.resume = true, .begun = begun}, observer);
  EXPECT_EQ(testing::files_of(path("longer")).checkpoint, whole);
  wanted.scale_learning_rate = 4;
  EXPECT_TRUE(mentions(error_of([&] { require_same_run(wanted, begun); }), {"--scale-learning-rate differs", "(2)"}));
}

}  // namespace
}  // namespace miniqat::training::optimizers_test
