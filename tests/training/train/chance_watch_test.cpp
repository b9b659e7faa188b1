#include <string>
#include <vector>

#include "tests/training/run_fixture.h"
#include "training/train/watches.h"

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
    TrainingTask task(read_networks(settings));
    task.steps_per_epoch = epoch;
    Listener listener;
    ChanceWatch watch(task, listener);
    std::int64_t step = 0;
    for (const double loss : losses)
      for (std::int64_t k = 0; k < epoch; ++k) watch.after_step({.step = ++step, .loss = loss});
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

TEST_F(ChanceWatchTest, WithWeightsOfAnySizeNobodyKnowsTheLossOfEqualOdds) {
  TrainSettings run = settings();
  run.class_weights = "balanced";
  EXPECT_EQ(heard(run, {2.31}).size(), 1u) << "their mean is 1";
  run.class_weights = place_.write("weights.json", "[9, 9, 9, 9, 9, 9, 9, 9, 9, 1]").string();
  EXPECT_EQ(heard(run, {2.31}).size(), 0u);
}

TEST_F(ChanceWatchTest, ABadStartAndAFewStepsDoNotCount) {
  TrainSettings run = settings();
  TrainingTask task(read_networks(run));
  task.steps_per_epoch = kEpoch;
  Listener listener;
  ChanceWatch watch(task, listener);
  for (std::int64_t step = 1; step <= kEpoch; ++step)
    watch.after_step({.step = step, .loss = step <= kEpoch / 2 ? 100 : 1.9});
  EXPECT_TRUE(listener.warnings.empty());
  EXPECT_EQ(heard(run, {2.3026}, 38).size(), 0u) << "19 steps";
  EXPECT_EQ(heard(run, {2.3026}, 39).size(), 1u) << "20 steps";
}

/// Of a data set in a few big batches.
TEST_F(ChanceWatchTest, ShortEpochsAreTakenTogether) {
  const TrainSettings run = settings();
  for (const std::int64_t steps : {1, 4, 38}) {
    const std::int64_t together = (39 + steps - 1) / steps;
    const auto epochs = [&](std::int64_t count, double loss) {
      return std::vector<double>(static_cast<std::size_t>(count), loss);
    };
    EXPECT_EQ(heard(run, epochs(together - 1, 2.3026), steps).size(), 0u);
    EXPECT_EQ(heard(run, epochs(3 * together, 2.2), steps).size(), 0u);
    std::vector<double> losses = epochs(together, 1.5);
    for (const double loss : epochs(2 * together, 2.31)) losses.push_back(loss);
    const std::vector<std::string> warnings = heard(run, losses, steps);
    ASSERT_EQ(warnings.size(), 1u) << steps;
    EXPECT_NE(warnings[0].find(concat("the loss of epochs ", together + 1, " to ", 2 * together, ", 2.31,")),
              std::string::npos)
        << warnings[0];
  }
}

/// The widths of the flags were asked once, which are 8 bits here.
TEST_F(ChanceWatchTest, TheAdviceLooksAtTheBitsOfLayers) {
  TrainSettings run = settings();
  const auto advice = [&] { return heard(run, {2.3026}).at(0); };
  run.rewrite.ranges = quantize::RangeChoice::kObserved;
  run.rewrite.bits_config = "bits.json";
  run.rewrite.layer_bits = {{.pattern = "conv1", .weight_bits = 2}};
  EXPECT_NE(advice().find("--ranges learned"), std::string::npos);
  run.rewrite.layer_bits[0].ranges = quantize::RangeChoice::kLearned;
  EXPECT_EQ(advice().find("--ranges learned"), std::string::npos);
}

/// There is nothing to learn about the range of a Sigmoid.
TEST_F(ChanceWatchTest, KnownRangesAreNoReasonToLearnRanges) {
  std::string graph = testing::tiny_classifier();
  const std::string relu = "\"op\": \"Relu\"";
  graph.replace(graph.find(relu), relu.size(), "\"op\": \"Sigmoid\"");
  place_.write("sigmoid.json", graph);
  TrainSettings run = settings();
  run.model = path("sigmoid.json").string();
  run.rewrite.weight_bits = run.rewrite.activation_bits = 4;
  run.rewrite.ranges = quantize::RangeChoice::kLearned;
  EXPECT_NE(heard(run, {2.3026}).at(0).find("--init-checkpoint"), std::string::npos);
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
