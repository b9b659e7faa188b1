#include "training/train/range_start.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "datasets/loader.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/training/run_fixture.h"
#include "training/model_source.h"
#include "training/run/init_checkpoint.h"

namespace miniqat::training::range_start_test {
namespace {

struct Listener : RunObserver {
  void say(const std::string& text) override {
    if (text.find("least squares") != std::string::npos) starts.push_back(text);
  }
  void warn(const std::string&) override {}
  std::vector<std::string> starts;
};

using Texts = std::vector<std::string>;
using Ranges = std::map<std::string, std::vector<float>>;

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

/// All variables that are ends of ranges.
Ranges ranges_in(const NamedTensors& variables) {
  Ranges ranges;
  for (const auto& [name, tensor] : variables)
    if (!name.starts_with("optimizer:") && (name.ends_with("_quant/min") || name.ends_with("_quant/max")))
      ranges[name] = floats(tensor);
  return ranges;
}

class RangeStartTest : public RunFixture {
 protected:
  static constexpr std::size_t kQuantizers = 4;

  TrainSettings learning(std::int64_t delay = 0) const {
    TrainSettings settings = RunFixture::settings();
    settings.rewrite.ranges = quantize::RangeChoice::kLearned;
    settings.rewrite.weight_bits = settings.rewrite.activation_bits = 4;
    settings.rewrite.quant_delay = delay;
    return settings;
  }
  /// A step that changes nothing, for a look at the ranges before it.
  TrainSettings still(std::int64_t delay = 0) const {
    TrainSettings settings = learning(delay);
    settings.steps = 1;
    settings.learning_rate = 0;
    settings.range_learning_rate = 0;
    return settings;
  }
  Ranges ranges_of(const std::string& run) const {
    return ranges_in(read_safetensors(path(run) / "checkpoint.safetensors").tensors);
  }
  Texts train_quietly(const std::string& name, const TrainSettings& settings) const {
    Listener listener;
    train_new(name, settings, listener);
    return listener.starts;
  }
  /// What Calibrator makes of a run's weights, or of fresh ones.
  Ranges calibrated(const TrainSettings& settings, const std::string& run = "") const {
    TrainingTask task(read_networks(settings));
    if (!run.empty())
      task.session.restore(read_safetensors(path(run) / "checkpoint.safetensors"), Session::Restore::kVariables, run);
    task.test_session.restore(task.session.checkpoint(), Session::Restore::kVariables, "the training graph");
    datasets::Loader loader(task.data.train, {.batch_size = 4, .seed = static_cast<std::uint64_t>(settings.seed)});
    quantize::Calibrator calibrator(task.test_session, {quantize::CalibrationMethod::kMse});
    for (std::int64_t batch = 0; batch < task.steps_per_epoch; ++batch)
      calibrator.observe({{task.evaluation.images, loader.next().images}});
    calibrator.finish();
    return ranges_in(task.test_session.variables());
  }
};

TEST_F(RangeStartTest, AFreshRunStartsAtLeastSquares) {
  EXPECT_EQ(train_quietly("run", still()), Texts{"4 learned ranges start at least squares, after step 0"});
  const Ranges started = ranges_of("run");
  EXPECT_EQ(started.size(), 2 * kQuantizers);
  EXPECT_EQ(started, calibrated(still()));
  EXPECT_EQ(started.at("conv1/act_quant/min"), std::vector<float>{0});
  EXPECT_EQ(started.at("fc/weights_quant/min")[0], -started.at("fc/weights_quant/max")[0]);
  EXPECT_LT(started.at("fc/weights_quant/max")[0], 1);
  train_quietly("moved", learning());
  EXPECT_NE(ranges_of("moved").at("fc/weights_quant/max"), started.at("fc/weights_quant/max"));
  EXPECT_EQ(ranges_of("moved").at("conv1/act_quant/min"), std::vector<float>{0}) << "nothing is below";
}

TEST_F(RangeStartTest, AlsoWithARangePerChannel) {
  TrainSettings settings = still();
  settings.rewrite.per_channel = true;
  train_quietly("run", settings);
  EXPECT_EQ(ranges_of("run").at("fc/weights_quant/max").size(), 10u);
  EXPECT_EQ(ranges_of("run"), calibrated(settings));
}

TEST_F(RangeStartTest, ObservedRangesAreLeftAlone) {
  TrainSettings settings = still();
  settings.rewrite.activation_bits = 8;
  settings.rewrite.ranges = quantize::RangeChoice::kAuto;
  EXPECT_EQ(train_quietly("run", settings), Texts{"2 learned ranges start at least squares, after step 0"});
  const Ranges ranges = ranges_of("run"), least = calibrated(settings);
  EXPECT_EQ(ranges.at("fc/weights_quant/max"), least.at("fc/weights_quant/max"));
  EXPECT_NE(ranges.at("fc/act_quant/max"), least.at("fc/act_quant/max"));
  settings.rewrite.ranges = quantize::RangeChoice::kObserved;
  EXPECT_EQ(train_quietly("observed", settings), Texts{});
}

TEST_F(RangeStartTest, RangesOfACheckpointStay) {
  train_quietly("first", learning());
  TrainSettings settings = still();
  settings.init_checkpoint = path("first").string();
  EXPECT_EQ(train_quietly("second", settings), Texts{});
  EXPECT_EQ(ranges_of("second"), ranges_of("first"));

  TrainSettings in_float = learning();
  in_float.float_only = true;
  train_quietly("float", in_float);
  settings.init_checkpoint = path("float").string();
  EXPECT_EQ(train_quietly("third", settings), Texts{"4 learned ranges start at least squares, after step 0"});
  EXPECT_EQ(ranges_of("third"), calibrated(still(), "third"));
}

// The range of a Relu6 ends at 6, where its variable starts, and stays there.
TEST_F(RangeStartTest, OnlyRangesThatACheckpointDoesNotGiveStart) {
  train_quietly("first", learning());
  Safetensors content = read_safetensors(path("first") / "checkpoint.safetensors");
  const auto start_from = [&](const std::string& name) {
    write_safetensors(path("start.safetensors"), content);
    TrainSettings settings = still();
    settings.init_checkpoint = path("start.safetensors").string();
    return train_quietly(name, settings);
  };
  content.tensors["conv1/act_quant/max"] = Tensor::scalar(6.0f);
  Ranges expected = ranges_in(content.tensors);
  EXPECT_EQ(expected.at("conv1/act_quant/min"), std::vector<float>{0});
  EXPECT_EQ(start_from("given"), Texts{});
  EXPECT_EQ(ranges_of("given"), expected);
  for (const std::string end : {"conv1/act_quant/min", "conv1/act_quant/max"}) content.tensors.erase(end);
  EXPECT_EQ(start_from("missing"), Texts{"1 learned range starts at least squares, after step 0"});
  expected["conv1/act_quant/max"] = calibrated(still(), "missing").at("conv1/act_quant/max");
  EXPECT_EQ(ranges_of("missing"), expected);
}

// A run that died before its delay: its observed ranges have moved, the learned ones have not begun.
TEST_F(RangeStartTest, RangesThatHadNotBegunStart) {
  struct Killer : Listener {
    void on_step(const StepReport& report) override {
      if (report.step == 4) throw Error("killed");
    }
  } killer;
  TrainSettings source = learning(100), settings = still();
  source.save_every = "1";
  EXPECT_NE(testing::error_of([&] { train_new("learned", source, killer); }), "");
  const Safetensors content = read_safetensors(path("learned") / "checkpoint.safetensors");
  EXPECT_EQ(ranges_in(content.tensors).at("fc/weights_quant/max"), std::vector<float>{6});
  write_safetensors(path("file.safetensors"), content);
  settings.init_checkpoint = path("file.safetensors").string();
  EXPECT_EQ(train_quietly("from-file", settings), Texts{"4 learned ranges start at least squares, after step 0"});

  for (TrainSettings* one : {&source, &settings}) {
    one->rewrite.activation_bits = 8;
    one->rewrite.ranges = quantize::RangeChoice::kAuto;
  }
  EXPECT_NE(testing::error_of([&] { train_new("both", source, killer); }), "");
  settings.init_checkpoint = path("both").string();
  EXPECT_EQ(train_quietly("from-run", settings), Texts{"2 learned ranges start at least squares, after step 0"});
}

// A calibrated range of zeros, of a channel without weights, say. No step would widen it.
TEST_F(RangeStartTest, EmptyRangesOfACheckpointBecomeWide) {
  TrainSettings settings = learning();
  settings.rewrite.per_channel = true;
  train_quietly("first", settings);
  Safetensors content = read_safetensors(path("first") / "checkpoint.safetensors");
  Ranges expected = ranges_in(content.tensors);
  const Ranges initial = ranges_in(TrainingTask(read_networks(settings)).session.variables());
  const auto make_empty = [&](const std::string& quantizer, std::size_t channel) {
    for (const std::string end : {"/min", "/max"}) {
      content.tensors.at(quantizer + end).data<float>()[channel] = 0;
      expected.at(quantizer + end)[channel] = initial.at(quantizer + end)[channel];
    }
  };
  for (const char* activations : {"conv1/act_quant", "fc/act_quant"}) make_empty(activations, 0);
  make_empty("fc/weights_quant", 3);
  EXPECT_EQ(initial.at("fc/weights_quant/max")[3], 6);
  write_safetensors(path("start.safetensors"), content);
  settings.steps = 1;
  settings.learning_rate = settings.range_learning_rate = 0;
  settings.init_checkpoint = path("start.safetensors").string();
  EXPECT_EQ(train_quietly("second", settings), Texts{});
  EXPECT_EQ(ranges_of("second"), expected);
}

TEST_F(RangeStartTest, WithADelayTheyStartWhenQuantizationBegins) {
  EXPECT_EQ(train_quietly("run", learning(5)), Texts{"4 learned ranges start at least squares, after step 4"});
  EXPECT_EQ(train_quietly("late", learning(9)), Texts{"4 learned ranges start at least squares, after step 8"});
  EXPECT_EQ(train_quietly("one", learning(1)), Texts{"4 learned ranges start at least squares, after step 0"});
  EXPECT_EQ(train_quietly("last", learning(12)), Texts{"4 learned ranges start at least squares, after step 11"});
  // Whatever a checkpoint gave: the weights are others by now.
  TrainSettings settings = learning(5);
  settings.init_checkpoint = path("run").string();
  EXPECT_EQ(train_quietly("again", settings), Texts{"4 learned ranges start at least squares, after step 4"});
  // Until then the run is that of a float network.
  TrainSettings in_float = settings = learning(5);
  settings.steps = in_float.steps = 4;
  in_float.float_only = true;
  train_quietly("before", settings);
  train_quietly("float", in_float);
  EXPECT_EQ(testing::losses_of(path("before")), testing::losses_of(path("float")));
}

// Layers of a graph file may have delays of their own.
TEST_F(RangeStartTest, EachDelayStartsItsOwnRanges) {
  Graph graph = read_network(path("tiny.json"));
  for (const auto& [scope, delay] : {std::pair("conv1", 5), {"fc", 9}}) {
    quantize::RewriteOptions options = learning(delay).rewrite;
    options.scope = scope;
    quantize::create_training_graph(graph, options);
  }
  place_.write("two.json", graph_to_json(graph));
  TrainSettings settings = learning();
  settings.model = path("two.json").string();
  const Texts starts = {"2 learned ranges start at least squares, after step 4",
                        "2 learned ranges start at least squares, after step 8"};
  EXPECT_EQ(train_quietly("run", settings), starts);
  settings.steps = 8;
  EXPECT_EQ(train_quietly("between", settings), Texts{starts[0]});
  const Ranges ranges = ranges_of("between"), least = calibrated(settings, "between");
  EXPECT_EQ(ranges.at("fc/weights_quant/max"), least.at("fc/weights_quant/max")) << "for the accuracy";
  EXPECT_NE(ranges.at("conv1/weights_quant/max"), least.at("conv1/weights_quant/max")) << "it learns already";
}

// Its accuracy is that of its weights on grids that fit them, not on -6..6.
TEST_F(RangeStartTest, ARunThatEndsBeforeItsDelayIsEvaluatedWithRangesThatFit) {
  for (const std::int64_t delay : {13, 14, 1000}) {
    const std::string run = "run" + std::to_string(delay);
    EXPECT_EQ(train_quietly(run, learning(delay)), Texts{});
    EXPECT_EQ(ranges_of(run), calibrated(learning(delay), run)) << delay;
  }
}

TEST_F(RangeStartTest, ARunThatIsStoppedBeforeItsDelayHasRangesThatFit) {
  struct Stopper : Listener {
    void on_step(const StepReport& report) override { step = report.step; }
    bool wants_to_stop() override { return step == 3; }
    std::int64_t step = 0;
  } stopper;
  TrainSettings settings = learning(5);
  settings.save_every = "1";
  train_new("run", settings, stopper);
  EXPECT_EQ(testing::step_of(path("run")), 3);
  EXPECT_EQ(ranges_of("run"), calibrated(settings, "run"));
}

// Before, at and after the delay, at the end of the epoch (step 8) and beside it.
TEST_F(RangeStartTest, ARunThatIsStoppedAnywhereGoesOnToTheSameBits) {
  for (const std::int64_t delay : {0, 5, 8, 9}) {
    const std::string whole = "whole" + std::to_string(delay);
    const TrainSettings settings = learning(delay);
    Listener listener;
    const testing::RunFiles expected = train_new(whole, settings, listener);
    for (std::int64_t stop = 1; stop < 12; ++stop) {
      // Usually those beside the delay, and one of the others.
      if (stop != 3 && std::abs(delay - 1 - stop) > 1 && !testing::tries_all_cases()) continue;
      const std::string run = whole + "-" + std::to_string(stop);
      train(settings, RunDirectory::fresh(path(run), "none"), {.stop_at = stop}, listener);
      EXPECT_EQ(testing::step_of(path(run)), stop);
      train(settings, RunDirectory::resume(path(run)), {.resume = true, .begun = settings}, listener);
      const testing::RunFiles found = testing::files_of(path(run));
      EXPECT_EQ(found.checkpoint, expected.checkpoint) << "delay " << delay << ", stopped after " << stop;
      EXPECT_EQ(found.summary, expected.summary);
      EXPECT_EQ(testing::losses_of(path(run)), testing::losses_of(path(whole)));
    }
  }
}

// The first checkpoint is written before the ranges start. Those that another run gave stay, one of a Relu6, too.
TEST_F(RangeStartTest, ARunThatWasKilledBeforeItsFirstStepStartsThem) {
  Listener listener;
  struct Killer : Listener {
    void on_step(const StepReport&) override { throw Error("killed"); }
  } killer;
  train_quietly("first", learning());
  Safetensors content = read_safetensors(path("first") / "checkpoint.safetensors");
  content.tensors["conv1/act_quant/max"] = Tensor::scalar(6.0f);
  write_safetensors(path("start.safetensors"), content);
  TrainSettings settings = learning();
  for (const std::string run : {"fresh", "started"}) {
    if (run == "started") settings.init_checkpoint = path("start.safetensors").string();
    const testing::RunFiles expected = train_new(run + "-whole", settings, listener);
    EXPECT_NE(testing::error_of([&] { train_new(run, settings, killer); }), "");
    EXPECT_EQ(testing::step_of(path(run)), 0);
    train(settings, RunDirectory::resume(path(run)), {.resume = true, .begun = settings}, listener);
    EXPECT_EQ(testing::files_of(path(run)).checkpoint, expected.checkpoint) << run;
  }
  EXPECT_EQ(listener.starts.size(), 2u) << "of the fresh run";
}

// Multiplied by anything, 0 stays 0: such a range would keep the layer at 0 for good.
TEST_F(RangeStartTest, ARangeOfZerosStartsAtItsInitializer) {
  std::string graph = testing::tiny_classifier();
  graph.replace(graph.find(R"("he_normal")"), std::string(R"("he_normal")").size(), R"("constant", "value": 0)");
  place_.write("zeros.json", graph);
  TrainSettings settings = still();
  settings.model = path("zeros.json").string();
  train_quietly("run", settings);
  const Ranges ranges = ranges_of("run");
  EXPECT_EQ(ranges.at("conv1/weights_quant/min"), std::vector<float>{-6});
  EXPECT_EQ(ranges.at("conv1/weights_quant/max"), std::vector<float>{6});
  EXPECT_EQ(ranges.at("conv1/act_quant/max"), std::vector<float>{6});
  EXPECT_LT(ranges.at("fc/weights_quant/max")[0], 1);
}

/// The moving statistics of conv1's batch norm become `variance` before the ranges start; the texts and the ranges.
struct Started {
  Texts texts;
  Ranges ranges;
};

class StatisticsTest : public RangeStartTest {
 protected:
  StatisticsTest() { place_.write("norm.json", testing::tiny_classifier_with_batch_norm()); }

  TrainSettings with_batch_norm() const {
    TrainSettings settings = learning();
    settings.model = path("norm.json").string();
    return settings;
  }
  static Started start(const TrainSettings& settings, float variance) {
    TrainingTask task(read_networks(settings));
    Tensor moving(Shape{4});
    std::ranges::fill(moving.values<float>(), variance);
    task.session.set_variable("conv1/moving_variance", moving);
    Listener listener;
    RangeStart(task, listener).before_step();
    return {.texts = listener.starts, .ranges = ranges_in(task.session.variables())};
  }
};

/// In training the batch's own statistics normalise: its numbers are of the magnitude of 1, whatever the moving ones
/// would make of them.
TEST_F(StatisticsTest, MovingStatisticsThatAreFarOffAreNotWhatRangesStartFrom) {
  for (const quantize::BnFold fold : {quantize::BnFold::kTf, quantize::BnFold::kSingle}) {
    TrainSettings settings = with_batch_norm();
    settings.rewrite.bn_fold = fold;
    for (const float variance : {1e-8f, 1e6f}) {
      const Started started = start(settings, variance);
      ASSERT_EQ(started.texts.size(), 1u);
      EXPECT_NE(started.texts[0].find("the batches' own statistics"), std::string::npos) << started.texts[0];
      const float largest = started.ranges.at("conv1/act_quant/max")[0];
      EXPECT_GT(largest, 0.5f) << variance;
      EXPECT_LT(largest, 8.0f) << variance;
    }
    // The weights that are quantized have the scale of the moving ones.
    EXPECT_GT(start(settings, 1e-8f).ranges.at("conv1/weights_quant/max")[0],
              100 * start(settings, 1e6f).ranges.at("conv1/weights_quant/max")[0]);
  }
}

TEST_F(StatisticsTest, MovingStatisticsThatFitStay) {
  TrainSettings settings = with_batch_norm();
  settings.rewrite.bn_fold = quantize::BnFold::kTf;
  const Started started = start(settings, 0.5f);
  EXPECT_EQ(started.texts, Texts{"4 learned ranges start at least squares, after step 0"});
  settings.rewrite.freeze_bn_delay = 0;
  EXPECT_EQ(start(settings, 1e-8f).texts, Texts{"4 learned ranges start at least squares, after step 0"})
      << "frozen ones normalise";
}

}  // namespace
}  // namespace miniqat::training::range_start_test
