#include "training/range_start.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quantize/calibrate/squared_error.h"
#include "tests/training/run_fixture.h"

namespace miniqat::training::range_start_test {
namespace {

struct Silent : RunObserver {
  void say(const std::string& text) override { lines.push_back(text); }
  std::vector<std::string> lines;
};

/// Ends by itself after some steps.
struct Stopping : Silent {
  explicit Stopping(std::int64_t last) : last(last) {}
  void on_step(const StepReport& report) override { step = report.step; }
  bool wants_to_stop() override { return step >= last; }
  std::int64_t last, step = 0;
};

class RangeStartTest : public RunFixture {
 protected:
  TrainSettings learned(std::int64_t delay = 0) const {
    TrainSettings learned = settings();
    learned.rewrite.ranges = quantize::RangeChoice::kLearned;
    learned.rewrite.weight_bits = learned.rewrite.activation_bits = 3;
    learned.rewrite.quant_delay = delay;
    return learned;
  }

  static float value(TrainingTask& task, const std::string& name) { return *task.session.variable(name).data<float>(); }
};

/// The weights' range of least squares, found from the weights alone.
quantize::Range<float> best_range(TrainingTask& task) {
  std::vector<quantize::WeightedValue> weights;
  for (const float w : task.session.variable("conv1/weights").values<float>()) weights.push_back({w, 1});
  return quantize::least_squares_range(quantize::SquaredError(std::move(weights)),
                                       {.bits = 3, .narrow_range = true, .symmetric = true});
}

TEST_F(RangeStartTest, BeforeTheFirstStepAtLeastSquares) {
  const TrainSettings wanted = learned();
  TrainingTask task(wanted);
  Silent observer;
  RangeStart start(task, observer);
  EXPECT_EQ(value(task, "conv1/act_quant/max"), 6);
  start.before_step();
  EXPECT_EQ(value(task, "conv1/weights_quant/max"), best_range(task).max);
  EXPECT_EQ(value(task, "conv1/weights_quant/min"), -best_range(task).max);
  EXPECT_EQ(value(task, "conv1/act_quant/min"), 0);
  EXPECT_GT(value(task, "conv1/act_quant/max"), 0);
  EXPECT_NE(value(task, "conv1/act_quant/max"), 6);
  ASSERT_EQ(observer.lines.size(), 1u);
  EXPECT_EQ(observer.lines[0], "4 learned ranges start at least squares, after step 0");
}

TEST_F(RangeStartTest, RangesThatAreThereStay) {
  const TrainSettings wanted = learned();
  TrainingTask task(wanted);
  Silent observer;
  for (const char* quantizer : {"conv1/weights_quant", "conv1/act_quant", "fc/weights_quant", "fc/act_quant"})
    task.session.set_variable(concat(quantizer, "/max"), Tensor::scalar(1.5f));
  RangeStart(task, observer).before_step();
  EXPECT_EQ(value(task, "conv1/weights_quant/max"), 1.5f);
  EXPECT_TRUE(observer.lines.empty());
}

TEST_F(RangeStartTest, ObservedRangesAreNotTouched) {
  const TrainSettings wanted = settings();
  TrainingTask task(wanted);
  Silent observer;
  RangeStart start(task, observer);
  start.before_step();
  start.at_epoch_end();
  EXPECT_EQ(value(task, "conv1/act_quant/max"), 6);
  EXPECT_TRUE(observer.lines.empty());
}

TEST_F(RangeStartTest, WithADelayWhenQuantizationBegins) {
  const TrainSettings wanted = learned(5);
  TrainingTask task(wanted);
  Silent observer;
  RangeStart start(task, observer);
  task.session.set_quantization_step(3);
  start.before_step();
  EXPECT_EQ(value(task, "conv1/act_quant/max"), 6) << "one step too early";
  start.at_epoch_end();
  EXPECT_EQ(value(task, "conv1/weights_quant/max"), best_range(task).max) << "for the accuracy of the epoch";
  task.session.set_variable("conv1/weights_quant/max", Tensor::scalar(9.0f));
  task.session.set_quantization_step(4);
  start.before_step();
  EXPECT_EQ(value(task, "conv1/weights_quant/max"), best_range(task).max);
  task.session.set_variable("conv1/weights_quant/max", Tensor::scalar(9.0f));
  task.session.set_quantization_step(5);
  start.before_step();
  start.at_epoch_end();
  EXPECT_EQ(value(task, "conv1/weights_quant/max"), 9) << "from here on it learns";
}

TEST_F(RangeStartTest, AStoppedRunGoesOnToTheSameBits) {
  for (const std::int64_t delay : {0, 5, 9}) {
    const TrainSettings wanted = learned(delay);
    Silent whole;
    const std::string id = std::to_string(delay);
    const testing::RunFiles expected = train_new("whole" + id, wanted, whole);
    for (const std::int64_t stop : {1, 4, 5, 8, 9}) {
      const std::string name = "run" + id + "-" + std::to_string(stop);
      Stopping first(stop);
      Silent second;
      train_new(name, wanted, first);
      ASSERT_EQ(testing::step_of(path(name)), stop);
      train(wanted, RunDirectory::resume(path(name)), {.resume = true, .begun = wanted}, second);
      EXPECT_EQ(testing::files_of(path(name)).checkpoint, expected.checkpoint) << delay << " " << stop;
    }
  }
}

TEST_F(RangeStartTest, RangesLearn) {
  TrainSettings wanted = learned();
  Silent observer;
  train_new("moving", wanted, observer);
  wanted.range_learning_rate = 0;
  train_new("still", wanted, observer);
  const auto range = [&](const std::string& run) {
    const Safetensors content = read_safetensors(path(run) / "checkpoint.safetensors");
    return *content.tensors.at("conv1/act_quant/max").data<float>();
  };
  EXPECT_NE(range("moving"), range("still"));
}

}  // namespace
}  // namespace miniqat::training::range_start_test
