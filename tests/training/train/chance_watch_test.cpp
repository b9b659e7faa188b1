#include "training/train/chance_watch.h"

#include <string>
#include <vector>

#include "tests/training/run_fixture.h"

namespace miniqat::training::chance_watch_test {
namespace {

struct Listener : RunObserver {
  void warn(const std::string& text) override { warnings.push_back(text); }
  std::vector<std::string> warnings;
};

/// Of the synthetic digits: 10 classes, ln 10 = 2.3026.
class ChanceWatchTest : public RunFixture {
 protected:
  static constexpr std::int64_t kEpoch = 50;

  /// The warnings over epochs with a loss each.
  std::vector<std::string> heard(const TrainSettings& settings, const std::vector<double>& losses,
                                 std::int64_t epoch = kEpoch) const {
    TrainingTask task(settings);
    task.steps_per_epoch = epoch;
    Listener listener;
    ChanceWatch watch(task, listener);
    std::int64_t step = 0;
    for (const double loss : losses)
      for (std::int64_t k = 0; k < epoch; ++k) watch.after_step(++step, loss);
    return listener.warnings;
  }
};

TEST_F(ChanceWatchTest, AnEpochAtTheLossOfEqualOddsIsNamedOnce) {
  const std::vector<std::string> warnings = heard(settings(), {1.5, 2.2, 2.29, 2.31, 2.3});
  ASSERT_EQ(warnings.size(), 1u);
  for (const char* part : {"warning: ", "epoch 3, 2.29,", "10 classes (2.30)", "--learning-rate"})
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
}

TEST_F(ChanceWatchTest, ANetworkThatLearnsALittleIsNot) { EXPECT_EQ(heard(settings(), {2.25, 2.2, 2.25}).size(), 0u); }

TEST_F(ChanceWatchTest, ALossAboveItIsNoBetter) { EXPECT_EQ(heard(settings(), {7.5}).size(), 1u); }

TEST_F(ChanceWatchTest, ABadStartAndAFewStepsDoNotCount) {
  TrainSettings run = settings();
  TrainingTask task(run);
  task.steps_per_epoch = kEpoch;
  Listener listener;
  ChanceWatch watch(task, listener);
  for (std::int64_t step = 1; step <= kEpoch; ++step) watch.after_step(step, step <= kEpoch / 2 ? 100 : 1.9);
  EXPECT_TRUE(listener.warnings.empty());
  EXPECT_EQ(heard(run, {2.3026, 2.3026}, 38).size(), 0u) << "19 steps";
  EXPECT_EQ(heard(run, {2.3026}, 40).size(), 1u) << "20 steps";
}

TEST_F(ChanceWatchTest, TheAdviceFitsTheRun) {
  TrainSettings run = settings();
  const auto advice = [&] { return heard(run, {2.3026}).at(0); };
  run.rewrite.weight_bits = 2;
  run.rewrite.ranges = quantize::RangeChoice::kObserved;
  EXPECT_NE(advice().find("--ranges learned"), std::string::npos);
  run.rewrite.ranges = quantize::RangeChoice::kLearned;
  EXPECT_NE(advice().find("--init-checkpoint"), std::string::npos);
  run.init_checkpoint = "float";
  EXPECT_EQ(advice().find("--init-checkpoint"), std::string::npos);
  run.float_only = true;
  EXPECT_NE(advice().find("--warmup-steps"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::training::chance_watch_test
