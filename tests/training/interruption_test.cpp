// Commands that are ended amid their work, at any point of it: what is left behind goes on to the same bits.

#include "core/platform/interruption.h"

#include <atomic>
#include <memory>
#include <vector>

#include "core/text/json.h"
#include "tests/fewer_cases.h"
#include "tests/training/run_fixture.h"
#include "training/calibrate/calibration.h"
#include "training/calibrate/reestimation.h"
#include "training/quantize/quantization_run.h"
#include "training/quantize/sensitivity.h"
#include "training/run/run_source.h"

namespace miniqat::training::interruption_test {
namespace {

namespace fs = std::filesystem;

std::atomic<std::int64_t> points = 0, last_point = 0;

bool is_over() { return points > last_point; }
void count_point() {
  ++points;
  if (is_over()) throw Interruption();
}

/// As a signal does it after so many points: everything ends, and observers are told.
class Signal : public RunObserver {
 public:
  explicit Signal(std::int64_t after) : scope_(count_point) {
    points = 0;
    last_point = after;
  }
  void say(const std::string& text) override { lines.push_back(text); }
  bool wants_to_stop() override { return is_over(); }

  std::vector<std::string> lines;

 private:
  const InterruptionScope scope_;
};

constexpr std::int64_t kNever = std::int64_t{1} << 40;

/// A signal that comes when step `last` has been taken.
struct SignalAfterStep : Signal {
  explicit SignalAfterStep(std::int64_t last) : Signal(kNever), last(last) {}
  void on_step(const StepReport& report) override {
    if (report.step == last) last_point = points - 1;
  }
  std::int64_t last;
};

/// Points from the first of `all` to the last but one: so many and one more in scripts/nightly, a quarter otherwise.
std::vector<std::int64_t> points_of(std::int64_t all, std::int64_t places) {
  if (!testing::tries_all_cases()) places /= 4;
  std::vector<std::int64_t> points;
  for (std::int64_t place = 0; place <= places; ++place) points.push_back(place * (all - 1) / places);
  return points;
}

class InterruptionTest : public RunFixture {
 protected:
  InterruptionTest() { place_.write("norm.json", testing::tiny_classifier_with_batch_norm()); }

  TrainSettings float_settings() const {
    TrainSettings in_float = settings();
    in_float.float_only = true;
    in_float.model = path("norm.json").string();
    return in_float;
  }

  /// The run, ended at that point and then taken to its end.
  testing::RunFiles resumed_after(std::int64_t point, const TrainSettings& settings) const {
    const fs::path run = path("run");
    fs::remove_all(run);
    {
      Signal signal(point);
      try {
        train(settings, RunDirectory::fresh(run, "none"), {}, signal);
      } catch (const Interruption&) {
      }
      EXPECT_TRUE(is_over());
      // Nothing that takes long came after it.
      EXPECT_LE(points - last_point, 8);
    }
    EXPECT_TRUE(fs::exists(run / "checkpoint.safetensors"));
    EXPECT_FALSE(fs::exists(run / ".lock"));
    RunObserver silent;
    train(settings, RunDirectory::resume(run), {.resume = true, .begun = settings}, silent);
    return testing::files_of(run);
  }

  void expect_same_wherever_it_ends(const TrainSettings& settings) const {
    const testing::RunFiles whole = [&] {
      Signal never(kNever);
      return train_new("whole", settings, never);
    }();
    const std::int64_t all = points;
    ASSERT_GT(all, 100);
    for (const std::int64_t point : points_of(all, 12)) {
      SCOPED_TRACE(::testing::Message() << "ended at point " << point << " of " << all);
      const testing::RunFiles run = resumed_after(point, settings);
      EXPECT_TRUE(run.checkpoint == whole.checkpoint);
      EXPECT_EQ(run.metrics, whole.metrics);
      EXPECT_EQ(run.summary, whole.summary);
      EXPECT_EQ(run.names, whole.names);
    }
  }
};

TEST_F(InterruptionTest, ATrainingGoesOnToTheSameBits) { expect_same_wherever_it_ends(settings()); }

TEST_F(InterruptionTest, SoDoesOneWhoseRangesStartAmidIt) {
  TrainSettings learning = settings();
  learning.rewrite.ranges = quantize::RangeChoice::kLearned;
  learning.rewrite.quant_delay = 5;
  expect_same_wherever_it_ends(learning);
}

TEST_F(InterruptionTest, SoDoesOneInSlicesThatEstimatesItsStatistics) {
  TrainSettings estimating = settings();
  estimating.model = path("norm.json").string();
  estimating.shards = 2;
  estimating.batch_size = 8;
  estimating.reestimate = 3;
  estimating.validation = 4;
  expect_same_wherever_it_ends(estimating);
}

/// Ranges are calibrated after step 3, where the run is to stop, step 8, the end of the epoch, and step 12, the last.
TEST_F(InterruptionTest, AStepHasItsLineIfASignalEndsTheCalibrationBehindIt) {
  TrainSettings learning = settings();
  learning.rewrite.ranges = quantize::RangeChoice::kLearned;
  learning.rewrite.quant_delay = 20;
  RunObserver silent;
  const testing::RunFiles whole = train_new("whole", learning, silent);
  for (const std::int64_t step : {3, 8, 12}) {
    const std::string name = "run" + std::to_string(step);
    {
      SignalAfterStep signal(step);
      train(learning, RunDirectory::fresh(path(name), "none"), {}, signal);
    }
    EXPECT_EQ(testing::step_of(path(name)), step);
    EXPECT_TRUE(testing::losses_of(path(name)).contains(step));
    train(learning, RunDirectory::resume(path(name)), {.resume = true, .begun = learning}, silent);
    const testing::RunFiles found = testing::files_of(path(name));
    EXPECT_EQ(found.metrics, whole.metrics) << "the accuracies of steps 8 and 12 are those of calibrated ranges";
    EXPECT_EQ(found.summary, whole.summary);
    EXPECT_TRUE(found.checkpoint == whole.checkpoint);
  }
}

TEST_F(InterruptionTest, ARunThatIsStoppedAmidItsEvaluationSaysSo) {
  {
    Signal never(kNever);
    train_new("whole", settings(), never);
  }
  // Its last evaluation has begun.
  Signal signal(points - 2);
  const testing::RunFiles run = train_new("run", settings(), signal);
  EXPECT_EQ(run.summary["complete"], false);
  EXPECT_TRUE(run.summary["test_accuracy"].is_null());
  EXPECT_EQ(run.summary["steps"], 12);
  EXPECT_NE(signal.lines.back().find("stopped after step 12 of 12; go on with: "), std::string::npos);
}

/// What `command` leaves in "out" if it is ended at any of some points.
template <class Command>
void expect_nothing_left(const fs::path& out, const Command& command) {
  std::int64_t all = 0;
  {
    Signal never(kNever);
    command(never);
    all = points;
  }
  ASSERT_GT(all, 20);
  fs::remove_all(out);
  for (const std::int64_t point : points_of(all, 12)) {
    Signal signal(point);
    SCOPED_TRACE(::testing::Message() << "ended at point " << last_point << " of " << all);
    bool ended = false;
    try {
      command(signal);
    } catch (const Interruption&) {
      ended = true;
    } catch (const Stopped&) {
      ended = true;
    }
    EXPECT_TRUE(ended);
    EXPECT_LE(points - last_point, 8);
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST_F(InterruptionTest, OtherCommandsLeaveNothing) {
  RunObserver silent;
  train_new("float", float_settings(), silent);
  TrainSettings quantized = settings();
  quantized.model = path("norm.json").string();
  train_new("quantized", quantized, silent);
  const CalibrationRequest calibration{.run = path("float").string(), .calibrate = {.batches = 3}, .threads = 1};
  expect_nothing_left(path("out"), [&](RunObserver& observer) {
    calibrate(calibration, RunDirectory::fresh(path("out"), "none"), observer);
  });
  ReestimationRequest reestimation{.run = path("quantized").string()};
  reestimation.reestimate.batches = 3;
  reestimation.threads = 1;
  expect_nothing_left(path("out"), [&](RunObserver& observer) {
    reestimate(reestimation, RunDirectory::fresh(path("out"), "none"), observer);
  });
  SensitivityRequest sensitivity;
  sensitivity.run = path("float").string();
  sensitivity.bits = {4};
  sensitivity.settings.batches = 2;
  sensitivity.settings.pictures = 8;
  sensitivity.threads = 1;
  expect_nothing_left(path("out"), [&](RunObserver& observer) { measure_sensitivity(sensitivity, observer); });
}

TEST_F(InterruptionTest, QuantizeGoesOnFromAnyPoint) {
  RunObserver silent;
  TrainSettings in_float = float_settings();
  in_float.steps = 40;
  train_new("float", in_float, silent);
  const FloatRun run = read_float_run(path("float").string());
  QuantizationPlan plan{.run = path("float").string(), .calibrate = {.batches = 2}};
  plan.training = quantization_defaults(run);
  plan.training.steps = 8;
  plan.training.threads = 1;
  complete(plan.training, run);
  const auto begin = [&](const char* name, RunObserver& observer) {
    return quantize_run(plan, new_quantization(path(name), RunDirectory::Existing::kRefuse), false, observer);
  };
  std::string whole;
  std::int64_t all = 0;
  {
    Signal never(kNever);
    begin("whole", never);
    all = points;
    whole = testing::bytes_of(path("whole/checkpoint.safetensors"));
  }
  for (const std::int64_t point : points_of(all, 8)) {
    SCOPED_TRACE(point);
    fs::remove_all(path("run"));
    auto signal = std::make_unique<Signal>(point);
    try {
      begin("run", *signal);
      ADD_FAILURE() << "it went on";
    } catch (const Interruption&) {
    } catch (const Stopped&) {
    }
    ASSERT_FALSE(signal->lines.empty());
    EXPECT_NE(signal->lines.back().find("go on with: miniqat quantize --resume"), std::string::npos)
        << signal->lines.back();
    signal.reset();
    const RunDirectory out = resumed_quantization(path("run"));
    quantize_run(read_plan(out), out, true, silent);
    EXPECT_TRUE(testing::bytes_of(path("run/checkpoint.safetensors")) == whole);
  }
}

}  // namespace
}  // namespace miniqat::training::interruption_test
