#include "training/calibrate/reestimation.h"

#include <algorithm>

#include "core/safetensors.h"
#include "tests/training/run_fixture.h"

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

}  // namespace
}  // namespace miniqat::training::reestimation_test
