// Training with --shards: the number of slices side by side changes no bit, and neither does a stop.

#include <string>
#include <vector>

#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/training/run_fixture.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"
#include "training/train/run_settings.h"

namespace miniqat::training::shards_test {
namespace {

using testing::error_of;
using testing::mentions;

class Shards : public RunFixture {
 protected:
  /// As main() does: no model file is read.
  Shards() { quantize::register_ops(), layers::register_ops(); }

  /// Slices of two pictures.
  TrainSettings settings() const {
    TrainSettings settings = RunFixture::settings();
    settings.model = "lenet";
    settings.width = 0.125;
    settings.batch_size = 16;
    settings.shards = 8;
    settings.steps = 3;
    settings.learning_rate = 0.02;
    return settings;
  }
  std::string checkpoint(const std::string& name, TrainSettings settings, std::int64_t threads) const {
    settings.threads = threads;
    RunObserver observer;
    return train_new(concat(name, "-", threads), settings, observer).checkpoint;
  }
  /// With 1, 2, 4 and 8 slices at a time, and 3, which divides nothing; usually with 1, 3 and 8.
  void expect_same_bits(const std::string& name, const TrainSettings& settings) const {
    const std::string expected = checkpoint(name, settings, 1);
    for (const std::int64_t threads : {3, 8, 2, 4}) {
      if (threads == 2 && !testing::tries_all_cases()) break;
      EXPECT_EQ(checkpoint(name, settings, threads), expected) << name << ", " << threads << " slices at a time";
    }
  }
};

TEST_F(Shards, LenetWithDropoutAtFourBits) {
  TrainSettings lenet = settings();
  lenet.rewrite.weight_bits = lenet.rewrite.activation_bits = 4;
  expect_same_bits("lenet", lenet);
  lenet.rewrite.ranges = quantize::RangeChoice::kLearned;
  expect_same_bits("learned", lenet);
  lenet.rewrite.per_channel = true;
  lenet.rewrite.ranges = quantize::RangeChoice::kAllValues;
  lenet.dampening = 0.001;
  lenet.optimizer = "adam";
  lenet.rewrite.quant_delay = 1;
  expect_same_bits("all-values", lenet);
}

TEST_F(Shards, MobilenetWithEachFoldingAndAugmentation) {
  TrainSettings mobilenet = settings();
  mobilenet.model = "mobilenet_v1";
  mobilenet.width = 0.125;
  // Two pictures of one pixel, as they are in the end, make wild gradients.
  mobilenet.learning_rate = 0.002;
  mobilenet.augment = "crop-flip";
  for (const quantize::BnFold fold : {quantize::BnFold::kTf, quantize::BnFold::kSingle, quantize::BnFold::kLate}) {
    mobilenet.rewrite.bn_fold = fold;
    mobilenet.rewrite.per_channel = fold == quantize::BnFold::kLate;
    const std::string name(names_of(fold)[static_cast<std::size_t>(fold)]);
    EXPECT_EQ(checkpoint(name, mobilenet, 8), checkpoint(name, mobilenet, 1)) << name;
  }
  mobilenet.rewrite.bn_fold = quantize::BnFold::kTf;
  mobilenet.rewrite.per_channel = false;
  mobilenet.reestimate = 2;
  EXPECT_EQ(checkpoint("estimated", mobilenet, 3), checkpoint("estimated", mobilenet, 2));
  mobilenet.reestimate = 0;
  mobilenet.rewrite.freeze_bn_delay = 2;
  EXPECT_EQ(checkpoint("frozen", mobilenet, 3), checkpoint("frozen", mobilenet, 2));
}

/// Two threads a slice are a setting of the run: other bits than one thread's are allowed, others for more cores are
/// not.
/// Threads stand for the processes. All that the first writes is what one process writes: evaluations, too.
TEST_F(Shards, AsManyProcessesAsThereAreWriteTheSame) {
  TrainSettings wanted = settings();
  wanted.model = "lenet_bn";
  wanted.augment = "shift";
  wanted.threads = 2;
  RunObserver observer;
  const testing::RunFiles expected = train_new("one", wanted, observer);
  for (const int processes : {4, 2, 8}) {
    if (processes != 4 && !testing::tries_all_cases()) break;
    const auto name = [&](int process) { return concat(process, "-of-", processes); };
    distributed::as_ranks(processes, [&](distributed::Communicator& communicator) {
      RunObserver silent;
      train(wanted, RunDirectory::fresh(path(name(communicator.rank())), "none"), {.ranks = communicator}, silent);
    });
    EXPECT_EQ(testing::files_of(path(name(0))), expected) << processes;
    // The leader's checkpoint is the run's.
    const std::filesystem::path last = path(name(processes - 1));
    EXPECT_EQ(testing::json_of(last / "summary.json")["test_loss"], expected.summary["test_loss"]) << processes;
    EXPECT_FALSE(std::filesystem::exists(last / "checkpoint.safetensors"));
  }
}

TEST_F(Shards, TwoThreadsASlice) {
  TrainSettings wanted = settings();
  wanted.threads_per_shard = 2;
  EXPECT_EQ(checkpoint("two", wanted, 2), checkpoint("two", wanted, 4));
  // Outside of steps, too.
  struct Counter : RunObserver {
    void on_step(const StepReport&) override { counts.push_back(thread_count()); }
    std::vector<int> counts;
  } counter;
  set_thread_count(3);
  train_new("counted", wanted, counter);
  set_thread_count(1);
  EXPECT_EQ(counter.counts, (std::vector<int>{2, 2, 2}));
}

TEST_F(Shards, OneShardIsTheRunWithoutShards) {
  TrainSettings one = settings();
  one.shards = 1;
  RunObserver observer;
  TrainSettings plain = RunFixture::settings();
  plain.model = one.model;
  plain.width = one.width;
  plain.batch_size = one.batch_size;
  plain.steps = one.steps;
  plain.learning_rate = one.learning_rate;
  EXPECT_EQ(train_new("one", one, observer).checkpoint, train_new("plain", plain, observer).checkpoint);
}

TEST_F(Shards, AResumedRunGoesOnToTheSameBitsOnOtherCores) {
  TrainSettings wanted = settings();
  wanted.threads = 8;
  RunObserver observer;
  const testing::RunFiles whole = train_new("whole", wanted, observer);
  const RunDirectory run = RunDirectory::fresh(path("run"), "none");
  train(wanted, run, {.stop_at = 2}, observer);
  const TrainSettings begun = begun_settings(run);
  EXPECT_EQ(begun.shards, 8);
  TrainSettings later = begun;
  later.threads = 2;
  require_same_run(later, begun);
  train(later, run, {.resume = true, .begun = begun}, observer);
  EXPECT_EQ(testing::files_of(path("run")).checkpoint, whole.checkpoint);

  later.shards = 4;
  EXPECT_TRUE(mentions(error_of([&] { require_same_run(later, begun); }), {"--shards differs", "8"}));
  later = begun;
  later.threads_per_shard = 2;
  EXPECT_TRUE(mentions(error_of([&] { require_same_run(later, begun); }), {"--threads-per-shard differs"}));
  TrainSettings unsharded = RunFixture::settings(), other = unsharded;
  other.threads = 2;
  EXPECT_TRUE(mentions(error_of([&] { require_same_run(other, unsharded); }), {"--threads differs"}));
}

/// A model file that fixes its batch fixes that of a slice.
TEST_F(Shards, AFixedBatchIsASlice) {
  TrainSettings wanted = settings();
  wanted.model = path("tiny.json").string();
  adopt_batch_size(wanted);
  EXPECT_EQ(wanted.batch_size, 4 * 8);
  wanted.batch_size = 16;
  RunObserver observer;
  EXPECT_TRUE(
      mentions(error_of([&] { train_new("wrong", wanted, observer); }), {"batches of 4", "16", "slice of 8", "2"}));
}

}  // namespace
}  // namespace miniqat::training::shards_test
