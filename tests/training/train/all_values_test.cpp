// Training with --ranges all-values: what becomes of the ranges of activations.

#include <algorithm>
#include <functional>
#include <utility>

#include "core/files/safetensors.h"
#include "datasets/loader.h"
#include "quantize/calibrate/calibrate.h"
#include "tests/training/run_fixture.h"
#include "training/train/training_task.h"

namespace miniqat::training::all_values_test {
namespace {

using Ends = std::pair<float, float>;

/// Stops after step `last`.
struct Stopper : RunObserver {
  explicit Stopper(std::int64_t last = 1000) : last(last) {}
  void on_step(const StepReport& report) override { step = report.step; }
  void say(const std::string&) override {}
  void warn(const std::string&) override {}
  bool wants_to_stop() override { return step >= last; }

  std::int64_t last;
  std::int64_t step = 0;
};

class AllValuesTest : public RunFixture {
 protected:
  static constexpr std::int64_t kSteps = 12;

  TrainSettings all_values() const {
    TrainSettings settings = RunFixture::settings();
    settings.rewrite.ranges = quantize::RangeChoice::kAllValues;
    settings.learning_rate = 0.05;
    return settings;
  }
  float stored(const std::string& run, const std::string& variable) const {
    return *read_safetensors(path(run) / "checkpoint.safetensors").tensors.at(variable).data<float>();
  }
  /// A quantizer's range after each step, as the metrics have it.
  std::vector<Ends> ends_of(const std::string& quantizer, const std::string& run, const TrainSettings& settings) const {
    std::vector<Ends> ends;
    Stopper never;
    for (const nlohmann::json& line : train_new(run, settings, never).metrics)
      if (line.contains("loss")) ends.push_back(line["ranges"][quantizer].get<Ends>());
    EXPECT_EQ(ends.size(), static_cast<std::size_t>(kSteps));
    EXPECT_EQ(ends.back(), Ends(stored(run, quantizer + "/min"), stored(run, quantizer + "/max")));
    return ends;
  }
};

bool never_shrinks(const std::vector<Ends>& ends) {
  return std::ranges::is_sorted(ends, std::greater(), &Ends::first) && std::ranges::is_sorted(ends, {}, &Ends::second);
}

TEST_F(AllValuesTest, StartWithTheFirstBatchAndNeverShrink) {
  const std::vector<Ends> ranges = ends_of("fc/act_quant", "all", all_values());
  TrainSettings observed = all_values();
  observed.rewrite.ranges = quantize::RangeChoice::kObserved;
  observed.rewrite.ema_decay = 0;  // the range of the last batch
  const std::vector<Ends> batches = ends_of("fc/act_quant", "observed", observed);
  EXPECT_EQ(ranges[0], batches[0]) << "not the initial -6..6";
  EXPECT_TRUE(never_shrinks(ranges));
  EXPECT_FALSE(never_shrinks(batches)) << "else this test says nothing";
  EXPECT_NE(ranges.back(), ranges.front());
}

TEST_F(AllValuesTest, AResumedRunHasTheSameBits) {
  Stopper whole, first(5), second;
  const testing::RunFiles expected = train_new("whole", all_values(), whole);
  train_new("run", all_values(), first);
  EXPECT_EQ(testing::step_of(path("run")), 5);
  EXPECT_EQ(stored("run", "fc/act_quant/num_updates"), 5);
  train(all_values(), RunDirectory::resume(path("run")), {.resume = true, .begun = all_values()}, second);
  EXPECT_EQ(testing::files_of(path("run")).checkpoint, expected.checkpoint);
  EXPECT_EQ(stored("run", "fc/act_quant/num_updates"), kSteps);
}

TEST_F(AllValuesTest, ObserveBeforeQuantizationBegins) {
  TrainSettings late = all_values();
  late.rewrite.quant_delay = 8;
  const std::vector<Ends> ranges = ends_of("fc/act_quant", "late", late);
  EXPECT_NE(ranges[0], (Ends{-6, 6}));
  EXPECT_NE(ranges[6], ranges[0]);
  EXPECT_TRUE(never_shrinks(ranges));
}

/// Training that starts from a calibrated network widens its ranges.
TEST_F(AllValuesTest, ACheckpointWithRangesIsWidened) {
  Stopper listener;
  train_new("first", all_values(), listener);
  Safetensors content = read_safetensors(path("first") / "checkpoint.safetensors");
  content.tensors.at("fc/act_quant/min") = Tensor::scalar(-100.0f);
  content.tensors.at("fc/act_quant/max") = Tensor::scalar(0.0f);
  write_safetensors(path("start.safetensors"), content);
  TrainSettings settings = all_values();
  settings.init_checkpoint = path("start.safetensors").string();
  train_new("second", settings, listener);
  EXPECT_EQ(stored("second", "fc/act_quant/min"), -100);
  EXPECT_GT(stored("second", "fc/act_quant/max"), 0);
  EXPECT_EQ(stored("second", "fc/act_quant/num_updates"), 24);
}

TEST_F(AllValuesTest, CalibrationSetsRangeAndCount) {
  TrainingTask task(read_networks(all_values()));
  datasets::Loader loader(task.data.train, {.batch_size = 4, .seed = 1});
  quantize::Calibrator calibrator(task.test_session, {quantize::CalibrationMethod::kMinMax});
  for (int batch = 0; batch < 3; ++batch) calibrator.observe({{task.evaluation.images, loader.next().images}});
  const std::vector<quantize::CalibratedRange> ranges = calibrator.finish();
  const auto found = std::ranges::find(ranges, "fc/act_quant", &quantize::CalibratedRange::quantizer);
  ASSERT_NE(found, ranges.end());
  EXPECT_FALSE(found->is_weights);
  EXPECT_EQ(*task.test_session.variable("fc/act_quant/min").data<float>(), found->set[0].min);
  EXPECT_EQ(*task.test_session.variable("fc/act_quant/max").data<float>(), found->set[0].max);
  EXPECT_EQ(*task.test_session.variable("fc/act_quant/num_updates").data<float>(), 3);
}

}  // namespace
}  // namespace miniqat::training::all_values_test
