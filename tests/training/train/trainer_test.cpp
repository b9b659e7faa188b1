#include "training/train/trainer.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "datasets/loader.h"
#include "tests/errors.h"
#include "tests/training/run_fixture.h"
#include "training/train/training_task.h"

namespace miniqat::training::trainer_test {
namespace {

/// Remembers what it hears, and wants to stop before step `last` + 1.
struct Listener : RunObserver {
  explicit Listener(std::int64_t last = 1000) : last(last) {}
  void on_begin(const TrainingTask& task, const RunDirectory& run) override {
    begun.push_back(run.path().filename().string() + " from " + std::to_string(task.session.step()));
  }
  void on_step(const StepReport& report) override { steps.push_back(report); }
  void say(const std::string& text) override { lines.push_back(text); }
  void warn(const std::string& text) override { warnings.push_back(text); }
  bool wants_to_stop() override { return !steps.empty() && steps.back().step >= last; }

  std::int64_t last;
  std::vector<std::string> begun;
  std::vector<StepReport> steps;
  std::vector<std::string> lines;
  std::vector<std::string> warnings;
};

using Trainer = RunFixture;

TEST_F(Trainer, TellsItsObserverAndNobodyElse) {
  Listener listener;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const testing::RunFiles files = train_new("run", settings(), listener);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(listener.begun, std::vector<std::string>{"run from 0"});
  ASSERT_EQ(listener.steps.size(), 12u);
  const auto losses = testing::losses_of(path("run"));
  for (std::int64_t i = 0; i < 12; ++i) {
    const StepReport& report = listener.steps[i];
    EXPECT_EQ(report.step, i + 1);
    EXPECT_EQ(report.total_steps, 12);
    EXPECT_EQ(report.epoch, static_cast<double>(i + 1) / 8);
    EXPECT_EQ(report.loss, losses.at(i + 1));
    EXPECT_GT(report.images_per_second, 0);
    EXPECT_EQ(report.seconds_left == 0, i == 11);
  }
  // The accuracy after the epoch and at the end, and that it is done.
  ASSERT_EQ(listener.lines.size(), 3u);
  EXPECT_TRUE(testing::mentions(listener.lines[0], {"epoch  1.00", "test accuracy"}));
  EXPECT_TRUE(testing::mentions(listener.lines[1], {"epoch  1.50", "test accuracy"}));
  EXPECT_TRUE(testing::mentions(listener.lines[2], {"done in", "of 20"}));
  EXPECT_EQ(listener.warnings, std::vector<std::string>{});
  EXPECT_EQ(files.summary["complete"], true);
}

TEST_F(Trainer, ARunThatItsObserverStoppedGoesOnToTheSameBits) {
  Listener whole, first(5), second;
  const testing::RunFiles expected = train_new("whole", settings(), whole);
  train_new("run", settings(), first);
  EXPECT_EQ(testing::step_of(path("run")), 5);
  EXPECT_TRUE(testing::mentions(first.lines.back(), {"stopped after step 5 of 12", "--resume"}));
  train(settings(), RunDirectory::resume(path("run")), {.resume = true, .begun = settings()}, second);
  EXPECT_EQ(second.begun, std::vector<std::string>{"run from 5"});
  EXPECT_EQ(second.steps.front().step, 6);
  EXPECT_EQ(testing::files_of(path("run")).checkpoint, expected.checkpoint);
}

/// The loader hands out bytes. A loop that feeds the numbers that they stand for comes to the same checkpoint.
TEST_F(Trainer, TrainsOnBytesAsOnTheirNumbers) {
  for (const std::string name : {"none", "shift"}) {
    TrainSettings wanted = settings();
    wanted.augment = name;
    wanted.rewrite.quantize_input = name == "none";
    Listener listener;
    train_new(name, wanted, listener);
    TrainingTask task(read_networks(wanted));
    datasets::Loader loader(task.data.train, {.batch_size = wanted.batch_size,
                                              .seed = static_cast<std::uint64_t>(wanted.seed),
                                              .augment = augmentation(wanted)});
    for (std::int64_t step = 0; step < wanted.steps; ++step) {
      const datasets::Batch& batch = loader.next();
      ASSERT_EQ(batch.images.dtype(), DType::kUInt8);
      task.session.train_step(task.ends.loss, *task.optimizer,
                              {{task.training.images, numbers_of(batch.images)}, {task.ends.labels, batch.labels}});
    }
    const NamedTensors trained = read_safetensors(path(name) / "checkpoint.safetensors").tensors;
    for (const auto& [variable, tensor] : task.session.checkpoint().tensors)
      EXPECT_EQ(std::memcmp(trained.at(variable).raw(), tensor.raw(), tensor.bytes()), 0) << name << ", " << variable;
  }
}

/// The learning rate is too small to move a weight.
TEST_F(Trainer, SmoothsTheLabelsOfTrainingOnly) {
  TrainSettings plain = settings(), smooth = settings();
  plain.float_only = smooth.float_only = true;
  smooth.label_smoothing = 0.25;
  plain.learning_rate = smooth.learning_rate = 1e-12;
  Listener listener;
  const testing::RunFiles one = train_new("plain", plain, listener), other = train_new("smooth", smooth, listener);
  EXPECT_NE(testing::losses_of(path("plain")).at(1), testing::losses_of(path("smooth")).at(1));
  EXPECT_NEAR(one.summary["test_loss"].get<double>(), other.summary["test_loss"].get<double>(), 1e-6);
  EXPECT_EQ(testing::json_of(path("smooth") / "config.json")["label_smoothing"], 0.25);
}

TEST_F(Trainer, WarnsOfADelayThatNeverPasses) {
  TrainSettings late = settings();
  late.rewrite.quant_delay = 100;
  Listener listener;
  train_new("run", late, listener);
  ASSERT_EQ(listener.warnings.size(), 1u);
  EXPECT_TRUE(
      testing::mentions(listener.warnings[0], {"warning: quantization was to begin at step 100", "--quant-delay"}));
}

TEST_F(Trainer, AProfileOfTheCallersIsFilled) {
  Profile profile;
  Listener listener;
  train(settings(), RunDirectory::fresh(path("run"), "none"), {.profile = &profile}, listener);
  EXPECT_GT(profile.kept().size(), 0u);
}

TEST_F(Trainer, WhatAnObserverThrowsEndsTheRunAtItsLastCheckpoint) {
  struct Thrower : RunObserver {
    void on_step(const StepReport& report) override {
      if (report.step == 10) throw Error("enough");
    }
  } thrower;
  const std::string text = testing::error_of([&] { train_new("run", settings(), thrower); });
  EXPECT_TRUE(testing::mentions(text, {"enough", "the checkpoint of step 8"})) << text;
  EXPECT_EQ(testing::step_of(path("run")), 8);
}

}  // namespace
}  // namespace miniqat::training::trainer_test
