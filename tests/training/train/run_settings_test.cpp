#include "training/train/run_settings.h"

#include "core/graph/graph_json.h"
#include "quantize/quantizers.h"
#include "tests/errors.h"
#include "tests/training/run_fixture.h"
#include "training/model_source.h"
#include "training/quantize/sensitivity_files.h"
#include "training/run/own_copies.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"

namespace miniqat::training::run_settings_test {
namespace {

using testing::error_of;
using testing::mentions;

class RunSettings : public RunFixture {
 protected:
  /// tiny.json with quantizers of 2 and 3 bits.
  std::string rewritten() const {
    Graph graph = read_network(path("tiny.json"));
    RewriteSettings rewrite;
    rewrite.weight_bits = 2;
    rewrite.activation_bits = 3;
    quantize::create_training_graph(graph, rewrite);
    write_graph(path("q.json"), graph);
    return path("q.json").string();
  }
};

TEST_F(RunSettings, TheDirectoryIsNamedAfterModelDataAndBits) {
  TrainSettings wanted = settings();
  wanted.seed = 3;
  EXPECT_EQ(default_directory(wanted), "runs/tiny-mnist-w8a8-seed3");
  wanted.rewrite.weight_bits = 4;
  wanted.rewrite.per_channel = true;
  wanted.rewrite.bn_fold = quantize::BnFold::kLate;
  wanted.rewrite.symmetric_weights = true;
  EXPECT_EQ(default_directory(wanted), "runs/tiny-mnist-w4a8-per-channel-symmetric-weights-late-seed3");
  wanted.rewrite.symmetric = true;
  wanted.rewrite.bits_config = "bits.json";
  EXPECT_EQ(default_directory(wanted), "runs/tiny-mnist-w4a8-mixed-per-channel-symmetric-late-seed3");
  wanted.float_only = true;
  EXPECT_EQ(default_directory(wanted), "runs/tiny-mnist-float-seed3");
  wanted.model = rewritten();
  EXPECT_EQ(default_directory(wanted), "runs/q-mnist-w2a3-seed3");
}

// The names of runs that there are must stay, though the label of a graph says more.
TEST_F(RunSettings, TheNameSaysNothingOfLearnedRanges) {
  TrainSettings wanted = settings();
  wanted.rewrite.ranges = quantize::RangeChoice::kLearned;
  EXPECT_EQ(default_directory(wanted), "runs/tiny-mnist-w8a8-symmetric-weights-seed1");
}

TEST_F(RunSettings, WhatIsLeftOpenIsSettled) {
  TrainSettings open = settings();
  open.augment = "auto";
  open.threads = 0;
  open.batch_size = 128;
  resolve(open);
  EXPECT_EQ(open.augment, "none");
  EXPECT_GE(open.threads, 1);
  EXPECT_EQ(open.learning_rate, 0.05);
  adopt_batch_size(open);
  EXPECT_EQ(open.batch_size, 4);
  open.model = "lenet";
  open.batch_size = 16;
  adopt_batch_size(open);
  EXPECT_EQ(open.batch_size, 16);
}

TEST_F(RunSettings, ARunGoesOnWithWhatItBeganWith) {
  const TrainSettings begun = settings();
  TrainSettings wanted = begun;
  wanted.epochs = 7;
  wanted.steps = 40;
  wanted.log_every = 3;
  wanted.save_every = "5";
  wanted.data_dir = "elsewhere";
  EXPECT_EQ(error_of([&] { require_same_run(wanted, begun); }), "");
  wanted.seed = 9;
  EXPECT_TRUE(mentions(error_of([&] { require_same_run(wanted, begun); }),
                       {"--seed differs from the run's own (1); leave it out to resume"}));
}

TEST_F(RunSettings, RoundedGradientsMayBecomeFloat32AndNothingElse) {
  constexpr GradientType kAll[] = {GradientType::kFloat32, GradientType::kBfloat16, GradientType::kInt8};
  for (const GradientType before : kAll)
    for (const GradientType after : kAll) {
      TrainSettings begun = settings(), wanted = begun;
      begun.gradients = before;
      wanted.gradients = after;
      const std::string error = error_of([&] { require_same_run(wanted, begun); });
      if (after == before || after == GradientType::kFloat32)
        EXPECT_EQ(error, "");
      else
        EXPECT_TRUE(mentions(error, {"--gradients differs from the run's own"}));
      EXPECT_EQ(wanted.gradients, after);
    }
}

TEST_F(RunSettings, TheSameInOtherWordsIsNoDifference) {
  TrainSettings begun = settings();
  begun.task = "classify";
  begun.rewrite.ranges = quantize::RangeChoice::kAuto;
  resolve(begun);
  const auto goes_on_with = [&](const auto& change) {
    TrainSettings wanted = begun;
    change(wanted);
    const std::string error = error_of([&] { require_same_run(wanted, begun); });
    return error.empty() && settings_to_json(wanted) != settings_to_json(begun) ? "with other settings" : error;
  };
  EXPECT_EQ(goes_on_with([](TrainSettings& wanted) { wanted.rewrite.ranges = quantize::RangeChoice::kByTask; }), "");
  EXPECT_EQ(goes_on_with([](TrainSettings& wanted) { wanted.augment = "auto"; }), "");
  EXPECT_EQ(goes_on_with([](TrainSettings& wanted) { wanted.task = kTaskOfData; }), "");
  EXPECT_EQ(goes_on_with([](TrainSettings& wanted) { wanted.learning_rate.reset(); }), "");
  EXPECT_EQ(goes_on_with([](TrainSettings& wanted) { wanted.sounds.features = datasets::Features::kAuto; }), "");
  const auto by_task = [](TrainSettings& wanted) { wanted.rewrite.ranges = quantize::RangeChoice::kByTask; };
  begun.rewrite.ranges = quantize::RangeChoice::kLearned;
  EXPECT_TRUE(mentions(goes_on_with(by_task), {"--ranges differs from the run's own (\"learned\")"}));
  // A run that began when observed ranges of a regression were averages.
  begun.task = "regress";
  begun.rewrite.ranges = quantize::RangeChoice::kAuto;
  EXPECT_TRUE(mentions(goes_on_with(by_task), {"--ranges differs from the run's own (\"auto\")"}));
  begun.threads = default_thread_count();
  EXPECT_EQ(goes_on_with([](TrainSettings& wanted) { wanted.threads = 0; }), "");
  begun.shards = 2;
  TrainSettings wanted = begun;
  wanted.threads = 0;
  require_same_run(wanted, begun);
  EXPECT_EQ(wanted.threads, default_thread_count()) << "0 is no number of threads to compute with";
}

TEST_F(RunSettings, OtherBitsOfLayersAreRefusedAndTheSameOnesKeepTheirFile) {
  place_.write("own.json", R"({"conv1": {"weight_bits": 4}})");
  place_.write("same.json", R"({ "conv1" : {"weight_bits": 4} })");
  place_.write("other.json", R"({"conv1": {"weight_bits": 5}})");
  TrainSettings begun = settings();
  begun.rewrite.bits_config = path("own.json").string();
  load_layer_bits(begun.rewrite);
  TrainSettings wanted = begun;
  wanted.rewrite.bits_config = path("same.json").string();
  require_same_run(wanted, begun);
  EXPECT_EQ(wanted.rewrite.bits_config, path("own.json").string());
  wanted.rewrite.bits_config = path("other.json").string();
  EXPECT_TRUE(mentions(error_of([&] { require_same_run(wanted, begun); }),
                       {"--bits-config: ", "other.json differs from the run's own (", "own.json"}));
}

TEST_F(RunSettings, AMovedRunTakesItsOwnArrays) {
  TrainSettings recorded = settings();
  recorded.dataset = "/nowhere/given_arrays.npz";
  std::filesystem::create_directory(path("moved"));
  write_json(path("moved/config.json"), settings_to_json(recorded));
  const RunDirectory run = RunDirectory::open(path("moved"));
  EXPECT_EQ(begun_settings(run).dataset, recorded.dataset) << "those of another run";
  place_.write("moved/given_arrays.npz", "");
  place_.write("moved/train_graph.json", "");
  const std::string own = path("moved/given_arrays.npz").string();
  EXPECT_EQ(settings_of(run).dataset, own);
  EXPECT_EQ(begun_settings(run).dataset, own);
  TrainSettings repeated = recorded;
  use_own_copies(repeated, run.config());
  EXPECT_EQ(repeated.dataset, own);
  repeated = settings();
  use_own_arrays(repeated, run);
  EXPECT_EQ(repeated.dataset, "mnist") << "other data are no arrays";
}

TEST_F(RunSettings, ANewRunDoesNotDeleteWhatItReads) {
  std::filesystem::create_directory(path("old"));
  for (const char* file : {"old/config.json", "old/given_arrays.npz", "old/table.csv"}) place_.write(file, "");
  TrainSettings wanted = settings();
  const auto refusal = [&] { return error_of([&] { require_inputs_elsewhere(wanted, path("old")); }); };
  EXPECT_EQ(refusal(), "");
  wanted.dataset = path("old/table.csv").string();
  EXPECT_EQ(refusal(), "") << "a file that stays";
  wanted.dataset = path("old/given_arrays.npz").string();
  EXPECT_TRUE(mentions(refusal(), {"--overwrite would delete ", "old/given_arrays.npz, the data of the new run"}));
  wanted.data = std::make_shared<const datasets::Splits>();
  EXPECT_EQ(refusal(), "") << "they are in memory";
  wanted = settings();
  wanted.init_checkpoint = path("old").string();
  EXPECT_TRUE(mentions(refusal(), {"--overwrite would delete ", "old, which --init-checkpoint reads"}));
}

TEST_F(RunSettings, ANewRunTakesNoStrangeFileForItsArrays) {
  for (const char* file : {"old/given_arrays.npz", "folder/given_arrays.npz"}) place_.write(file, "");
  TrainSettings wanted = settings();
  const auto refusal = [&] { return error_of([&] { require_inputs_elsewhere(wanted, path("folder")); }); };
  EXPECT_EQ(refusal(), "") << "other data are no arrays";
  wanted.dataset = path("old/given_arrays.npz").string();
  const std::vector<std::string> words = {"the new run would read ", "folder/given_arrays.npz, which is there already",
                                          "instead of ", "old/given_arrays.npz: move it"};
  EXPECT_TRUE(mentions(refusal(), words));
  RunObserver silent;
  EXPECT_TRUE(mentions(error_of([&] {
                         train(wanted, RunDirectory::fresh(path("folder"), "none", RunDirectory::Existing::kOverwrite),
                               {}, silent);
                       }),
                       words));
  wanted.data = std::make_shared<const datasets::Splits>();
  EXPECT_EQ(refusal(), "") << "the run replaces the file";
  wanted.data = nullptr;
  place_.write("folder/config.json", "");
  EXPECT_EQ(refusal(), "") << "the file goes with the run that is there";
}

TEST_F(RunSettings, AnEmptyPathIsNotTheCurrentDirectory) {
  EXPECT_TRUE(mentions(error_of([] { RunDirectory::fresh("", "none"); }), {"--out must not be empty"}));
  EXPECT_TRUE(mentions(error_of([] { RunDirectory::fresh("", "none", RunDirectory::Existing::kOverwrite); }),
                       {"--out must not be empty"}));
  EXPECT_TRUE(mentions(error_of([] { SensitivityFiles("", true); }), {"--out must not be empty"}));
}

TEST_F(RunSettings, ARateIsForItsOptimizer) {
  TrainSettings wanted = settings();
  wanted.optimizer = "adam";
  require_rate_for("sgd", wanted, false);
  wanted.learning_rate = 0.05;
  require_rate_for("adam", wanted, false);
  require_rate_for("sgd", wanted, true);
  EXPECT_TRUE(mentions(error_of([&] { require_rate_for("sgd", wanted, false); }),
                       {"--optimizer adam: the learning_rate 0.05 of --config was for sgd"}));
}

// Of the settings' values or, where these are the usual ones, of their names among the chosen.
TEST_F(RunSettings, AnEarlierRewriteDecides) {
  TrainSettings wanted = settings();
  wanted.model = rewritten();
  const auto refusal = [&](const TrainExtras& extras) {
    RunObserver observer;
    return error_of([&] { train(wanted, RunDirectory::fresh(path("run"), "none"), extras, observer); });
  };
  EXPECT_TRUE(mentions(refusal({.given = {"weight_bits"}}), {"--weight-bits 8: ", "q.json was rewritten before",
                                                             "has 2 bits, not 8", "leave --weight-bits"}));
  EXPECT_FALSE(std::filesystem::exists(path("run/config.json")));
  wanted.rewrite.activation_bits = 4;
  EXPECT_TRUE(mentions(refusal({}), {"--activation-bits 4: ", "has 3 bits, not 4"}));
  wanted.rewrite.activation_bits = 8;
  EXPECT_EQ(refusal({.given = {"epochs"}}), "");
  wanted.float_only = true;
  const auto existing = [&] {
    RunObserver observer;
    train(wanted, RunDirectory::fresh(path("float"), "none"), {}, observer);
  };
  EXPECT_TRUE(mentions(error_of(existing), {"--float: ", "q.json is quantized already (W2A3, 4 quantizers)"}));
}

}  // namespace
}  // namespace miniqat::training::run_settings_test
