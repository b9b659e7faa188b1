#include "training/calibrate/reestimation.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "core/files/safetensors.h"
#include "tests/training/run_fixture.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"

namespace miniqat::training::reestimation_test {
namespace {

/// Wants to stop once it has heard of batch `last`.
struct Listener : RunObserver {
  explicit Listener(std::int64_t last = -1) : last(last) {}
  void on_batch(std::int64_t done, std::int64_t) override { batches = done; }
  void say(const std::string& text) override { lines.push_back(text); }
  bool wants_to_stop() override { return batches == last; }

  std::int64_t last;
  std::int64_t batches = 0;
  std::vector<std::string> lines;
};

class Reestimation : public RunFixture {
 protected:
  Reestimation() { place_.write("norm.json", testing::tiny_classifier_with_batch_norm()); }
  TrainSettings with_batch_norm(std::int64_t reestimate) const {
    TrainSettings settings = RunFixture::settings();
    settings.model = path("norm.json").string();
    settings.reestimate = reestimate;
    return settings;
  }
  ReestimationRequest request() const {
    return {.run = path("run").string(), .reestimate = {.batches = 4}, .data_dir = {}, .threads = 1};
  }
};

TEST_F(Reestimation, ARunThatIsStoppedInItGoesOnToTheSameFiles) {
  Listener silent, stopping(2), second;
  const testing::RunFiles whole = train_new("whole", with_batch_norm(4), silent);
  EXPECT_NE(std::ranges::find(silent.lines, "re-estimated the statistics of 1 batch norm from 4 batches"),
            silent.lines.end());
  const testing::RunFiles stopped = train_new("run", with_batch_norm(4), stopping);
  EXPECT_EQ(stopped.summary["complete"], false);
  EXPECT_EQ(stopped.summary["steps"], 12);
  EXPECT_FALSE(read_safetensors(path("run/checkpoint.safetensors")).tensors.contains("trained:conv1/moving_mean"));
  EXPECT_NE(stopping.lines.back().find("stopped after step 12 of 12; go on with"), std::string::npos);
  train(with_batch_norm(4), RunDirectory::resume(path("run")), {.resume = true, .begun = with_batch_norm(4)}, second);
  const testing::RunFiles resumed = testing::files_of(path("run"));
  EXPECT_EQ(resumed.checkpoint, whole.checkpoint);
  EXPECT_EQ(resumed.summary, whole.summary);
}

TEST_F(Reestimation, ThatIsStoppedLeavesTheRunAsItWas) {
  Listener silent, stopping(3);
  const testing::RunFiles before = train_new("run", with_batch_norm(0), silent);
  EXPECT_THROW(reestimate(request(), RunDirectory::resume(path("run")), stopping), Stopped);
  EXPECT_EQ(stopping.batches, 3);
  EXPECT_EQ(testing::files_of(path("run")), before);
  stopping.batches = 0;
  EXPECT_THROW(reestimate(request(), RunDirectory::fresh(path("other"), "none"), stopping), Stopped);
  EXPECT_FALSE(std::filesystem::exists(path("other")));
}

TEST_F(Reestimation, SaysWhatItMeasured) {
  Listener silent;
  train_new("run", with_batch_norm(0), silent);
  const Reestimated result = reestimate(request(), RunDirectory::resume(path("run")), silent);
  EXPECT_EQ(silent.batches, 4);
  EXPECT_EQ(result.before.examples, 20);
  EXPECT_EQ(result.after.test->examples, 20);
  EXPECT_FALSE(result.after.validation);
  EXPECT_NE(result.after.test->loss, result.before.loss);
}

/// The layers of its integer model, in order.
std::vector<integer::Layer> layers_of(const std::filesystem::path& path) {
  const RunSource run = open_run(path.string(), "");
  std::vector<integer::Layer> layers;
  for (const integer::Operation& operation : convert_run(run.directory, run.checkpoint, recorded_input(run)).operations)
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) layers.push_back(*layer);
  return layers;
}

TEST_F(Reestimation, LeavesTheIntegersOfWeightsWhoseRangesAreLearned) {
  for (const quantize::BnFold fold : {quantize::BnFold::kTf, quantize::BnFold::kSingle}) {
    SCOPED_TRACE(static_cast<int>(fold));
    std::filesystem::remove_all(path("run"));
    TrainSettings settings = with_batch_norm(0);
    settings.rewrite.weight_bits = 4;
    settings.rewrite.ranges = quantize::RangeChoice::kLearned;
    settings.rewrite.per_channel = true;
    settings.rewrite.bn_fold = fold;
    Listener silent;
    train_new("run", settings, silent);
    const std::vector<integer::Layer> trained = layers_of(path("run"));
    reestimate(request(), RunDirectory::resume(path("run")), silent);
    const std::vector<integer::Layer> estimated = layers_of(path("run"));
    ASSERT_EQ(trained.size(), 2u);
    ASSERT_EQ(estimated.size(), 2u);
    const integer::Layer &conv = estimated[0], &dense = estimated[1];
    EXPECT_EQ(conv.weights, trained[0].weights);
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_GT(std::abs(conv.weight_scales[c] / trained[0].weight_scales[c] - 1), 0.05) << "its variance is another";
    EXPECT_NE(conv.bias, trained[0].bias);
    EXPECT_EQ(dense.weights, trained[1].weights);
    EXPECT_EQ(dense.weight_scales, trained[1].weight_scales);
    EXPECT_EQ(dense.bias, trained[1].bias);
  }
}

}  // namespace
}  // namespace miniqat::training::reestimation_test
