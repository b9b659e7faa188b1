#include "training/quantize/quantization_run.h"

#include <algorithm>

#include "core/files/safetensors.h"
#include "core/text/json.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/training/run_fixture.h"
#include "training/run/run_source.h"

namespace miniqat::training::quantization_run_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Wants to stop when it is asked for the time `last`.
struct Listener : RunObserver {
  explicit Listener(std::int64_t last = -1) : last(last) {}
  void say(const std::string& text) override { lines.push_back(text); }
  void warn(const std::string& text) override { warnings.push_back(text); }
  bool wants_to_stop() override { return ++asked >= last && last > 0; }
  bool said(const std::string& part) const {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }

  std::int64_t last;
  std::int64_t asked = 0;
  std::vector<std::string> lines;
  std::vector<std::string> warnings;
};

class QuantizationRunTest : public RunFixture {
 protected:
  QuantizationRunTest() {
    place_.write("norm.json", testing::tiny_classifier_with_batch_norm());
    place_.write("bits.json", R"({"fc": 6})");
  }
  FloatRun float_run(const std::string& name, std::int64_t validation = 0,
                     const std::string& model = "tiny.json") const {
    RunObserver silent;
    TrainSettings in_float = settings();
    in_float.model = path(model).string();
    in_float.float_only = true;
    in_float.steps = 80;
    in_float.validation = validation;
    train_new(name, in_float, silent);
    return read_float_run(path(name).string());
  }
  QuantizationPlan plan_for(const FloatRun& run, const std::string& name) const {
    QuantizationPlan plan{.run = path(name).string(), .calibrate = {.batches = 4}};
    plan.training = quantization_defaults(run);
    plan.training.rewrite.weight_bits = plan.training.rewrite.activation_bits = 4;
    plan.training.steps = 12;
    plan.training.threads = 1;
    complete(plan.training, run);
    return plan;
  }
  QuantizationResult quantized(const QuantizationPlan& plan, const std::string& name, RunObserver& observer) const {
    return quantize_run(plan, new_quantization(path(name), RunDirectory::Existing::kRefuse), false, observer);
  }
  QuantizationResult resumed(const std::string& name, RunObserver& observer) const {
    const RunDirectory out = resumed_quantization(path(name));
    return quantize_run(read_plan(out), out, true, observer);
  }
  std::string bytes(const std::string& file) const { return testing::bytes_of(path(file)); }
  Json json(const std::string& file) const { return testing::json_of(path(file)); }
  /// What the run of `name` is, without times and its own name.
  std::vector<std::string> content(const std::string& name) const {
    std::vector<std::string> result;
    for (const std::string stage : {"", "/calibrated", "/trained"})
      for (const char* file : {"checkpoint.safetensors", "train_graph.json", "eval_graph.json", "config.json"})
        result.push_back(bytes(name + stage + "/" + file));
    for (const char* file : {"quantize.json", "bits.json"})
      if (fs::exists(path(name + "/" + file))) result.push_back(bytes(name + "/" + file));
    for (const std::string stage : {"", "/trained"}) {
      testing::RunFiles files = testing::files_of(path(name + stage));
      // Where a run stops it measures, too.
      for (const Json& line : files.metrics)
        if (line.contains("loss")) result.push_back(line.dump());
      result.push_back(files.summary.dump());
      for (const std::string& file : files.names) result.push_back(file);
    }
    for (std::string& text : result)
      for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), "");
    return result;
  }
};

std::vector<std::string> names(const QuantizationResult& result) {
  std::vector<std::string> found;
  for (const QuantizedRow& row : result.rows) found.push_back(row.name);
  return found;
}

const QuantizedRow& row(const QuantizationResult& result, const std::string& name) {
  return *std::ranges::find(result.rows, name, &QuantizedRow::name);
}

TEST_F(QuantizationRunTest, TheDefaultsFollowTheFloatRun) {
  FloatRun run = float_run("float");
  run.settings.learning_rate = 0.5;
  run.settings.weight_decay = 0.01;
  run.settings.schedule = "step";
  TrainSettings settings = quantization_defaults(run);
  complete(settings, run);
  EXPECT_FALSE(settings.float_only);
  EXPECT_EQ(settings.epochs, 5);
  EXPECT_EQ(settings.steps, 0);
  EXPECT_EQ(settings.batch_size, 4);
  EXPECT_EQ(settings.weight_decay, 0.01);
  EXPECT_EQ(settings.schedule, "cosine");
  EXPECT_EQ(settings.rewrite.ranges, quantize::RangeChoice::kByTask);
  EXPECT_DOUBLE_EQ(*settings.learning_rate, kRateShare * 0.5);
  EXPECT_EQ(settings.reestimate, 0);
  // 32 pictures.
  EXPECT_EQ(settings.validation, 2);
  EXPECT_GE(settings.threads, 1);
  settings = quantization_defaults(run);
  settings.optimizer = "adam";
  complete(settings, run);
  EXPECT_DOUBLE_EQ(*settings.learning_rate, kRateShare * 0.001);
  for (const auto& [weights, activations, share] : {std::tuple(3, 3, kRateShare), {2, 4, 1.0}, {8, 2, 1.0}}) {
    settings = quantization_defaults(run);
    settings.rewrite.weight_bits = weights;
    settings.rewrite.activation_bits = activations;
    complete(settings, run);
    EXPECT_DOUBLE_EQ(*settings.learning_rate, share * 0.5) << weights << " " << activations;
  }
  const quantize::LayerBits few_weights{.pattern = "conv1", .weight_bits = 2};
  const quantize::LayerBits few_activations{.pattern = "*", .activation_bits = 2},
      three{.pattern = "*", .weight_bits = 3};
  for (const auto& [layer, share] : {std::pair(few_weights, 1.0), {few_activations, 1.0}, {three, kRateShare}}) {
    settings = quantization_defaults(run);
    settings.rewrite.layer_bits = {layer};
    complete(settings, run);
    EXPECT_DOUBLE_EQ(*settings.learning_rate, share * 0.5) << quantize::layer_bits_to_json({{layer}}).dump();
  }
  EXPECT_EQ(quantization_defaults(float_run("norm", 0, "norm.json")).reestimate, 50);
}

TEST_F(QuantizationRunTest, FewBitsBehindBatchNormsAreFoldedLatePerChannel) {
  using quantize::BnFold;
  const FloatRun norm = float_run("norm", 0, "norm.json"), tiny = float_run("tiny");
  const auto chosen = [&](RewriteSettings settings, const FloatRun& run, const std::set<std::string>& given = {}) {
    choose_folding(settings, run, given);
    return std::pair(settings.per_channel, settings.bn_fold);
  };
  RewriteSettings few, eight, mixed, power_of_two;
  few.weight_bits = 4;
  mixed.layer_bits = {{.pattern = "conv1", .weight_bits = 3}};
  power_of_two.weight_bits = 2;
  power_of_two.scales = quantize::ScaleChoice::kPowerOfTwo;
  EXPECT_EQ(chosen(few, norm), std::pair(true, BnFold::kLate));
  EXPECT_EQ(chosen(mixed, norm), std::pair(true, BnFold::kLate));
  EXPECT_EQ(chosen(power_of_two, norm), std::pair(true, BnFold::kSingle));
  EXPECT_EQ(chosen(few, norm, {"per_channel"}), std::pair(false, BnFold::kSingle));
  mixed.layer_bits.push_back({.pattern = "fc", .per_channel = false});
  EXPECT_EQ(chosen(mixed, norm), std::pair(true, BnFold::kSingle)) << "late folding would be an error";
  EXPECT_EQ(chosen(few, norm, {"bn_fold"}), std::pair(true, BnFold::kTf));
  for (const int bits : {2, 4}) {
    RewriteSettings ends;
    ends.ends_bits = bits;
    EXPECT_EQ(chosen(ends, norm), std::pair(true, BnFold::kLate)) << bits << " in the first and the last layer";
  }
  EXPECT_EQ(chosen(eight, norm), std::pair(false, BnFold::kTf));
  EXPECT_EQ(chosen(few, tiny), std::pair(false, BnFold::kTf));
}

TEST_F(QuantizationRunTest, RefusesWhatTheFloatRunDoesNotAllow) {
  const FloatRun run = float_run("float", 8);
  TrainSettings settings = quantization_defaults(run);
  EXPECT_EQ(settings.validation, 8);
  settings.validation = 4;
  std::string text = testing::error_of([&] { complete(settings, run); });
  EXPECT_TRUE(testing::mentions(text, {"--validation 4", "a validation part of 8 pictures"})) << text;
  settings.validation = 8;
  settings.reestimate = 1;
  text = testing::error_of([&] { complete(settings, run); });
  EXPECT_TRUE(testing::mentions(text, {"--reestimate", "has no batch norm"})) << text;
}

TEST_F(QuantizationRunTest, MakesTheBestNetworkTheRun) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float", 8), "float");
  const QuantizationResult result = quantized(plan, "run", silent);
  EXPECT_EQ(names(result), (std::vector<std::string>{"float", "calibrated", "trained", "integers"}));
  EXPECT_EQ(result.no_integers, "");
  EXPECT_TRUE(silent.said("8 training pictures, 0 to 1 of each of 10 classes, decide")) << silent.lines.front();
  EXPECT_EQ(json("run/quantize.json")["chosen_by"], "accuracy");
  EXPECT_FALSE(silent.said("the float run was trained with them"));
  for (const QuantizedRow& one : result.rows) {
    EXPECT_EQ(one.accuracies.validation->examples, 8);
    EXPECT_EQ(one.accuracies.test->examples, 20);
  }
  const Evaluation& chosen = *row(result, result.chosen).accuracies.validation;
  EXPECT_GE(chosen.correct(), row(result, "calibrated").accuracies.validation->correct());
  EXPECT_EQ(bytes("run/checkpoint.safetensors"), bytes("run/" + result.chosen + "/checkpoint.safetensors"));
  const RunSource source = open_run(path("run").string(), "");
  EXPECT_EQ(source.note, "");
  EXPECT_EQ(source.settings.validation, 8);
  EXPECT_EQ(json("run/summary.json")["test_accuracy"], row(result, result.chosen).accuracies.test->accuracy());
  const Json written = json("run/quantize.json");
  EXPECT_EQ(written["complete"], true);
  EXPECT_EQ(written["chosen"], result.chosen);
  EXPECT_EQ(written["rows"][1]["parameter_bytes"], 36 / 2 + 640 / 2 + 4 * 14);
  EXPECT_EQ(written["no_integers"], nullptr);
  EXPECT_EQ(written["training_failed"], nullptr);
}

TEST_F(QuantizationRunTest, ARunWithClassWeightsIsChosenByBalancedAccuracy) {
  Listener listener;
  QuantizationPlan plan = plan_for(float_run("float", 8), "float");
  plan.training.class_weights = "balanced";
  const QuantizationResult result = quantized(plan, "run", listener);
  EXPECT_TRUE(result.by_balanced_accuracy);
  EXPECT_TRUE(listener.said("decide by balanced accuracy")) << listener.lines.front();
  EXPECT_EQ(json("run/quantize.json")["chosen_by"], "balanced accuracy");
  const double chosen = *row(result, result.chosen).accuracies.validation->find("balanced_accuracy");
  for (const char* name : {"calibrated", "trained"})
    EXPECT_GE(chosen, *row(result, name).accuracies.validation->find("balanced_accuracy")) << name;
  EXPECT_EQ(json("run/summary.json")["validation_balanced_accuracy"], chosen);
  EXPECT_TRUE(fs::exists(path("run/trained/class_weights.json")));
}

// Those of the stages are not measured again.
TEST_F(QuantizationRunTest, RowsHaveTheAccuraciesOfTheirNetworks) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float", 8, "norm.json"), "float");
  plan.training.reestimate = 2;
  const QuantizationResult result = quantized(plan, "run", silent);
  for (const auto& [name, stage] : {std::pair("calibrated", "calibrated"), {"re-estimated", "trained"}}) {
    const RunSource source = open_run((path("run") / stage).string(), "");
    const datasets::Splits data = load_data(source, {}, plan.training.data_dir);
    Classifier network = find_classifier(read_network(source.directory.eval_graph()), stage);
    Session session(network.graph);
    session.restore(read_safetensors(source.checkpoint), Session::Restore::kVariables, stage);
    const PartResults& reported = row(result, name).accuracies;
    for (const auto& [part, seen] : {std::pair(*data.validation, *reported.validation), {data.test, *reported.test}}) {
      const Evaluation measured = evaluate(session, network, part);
      EXPECT_EQ(seen.correct(), measured.correct()) << name;
      EXPECT_EQ(seen.examples, measured.examples) << name;
      EXPECT_EQ(seen.loss, measured.loss) << name;
    }
  }
}

// A decay that leaves no weights.
TEST_F(QuantizationRunTest, NeverHandsOutLessThanCalibrationGave) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float", 8), "float");
  plan.training.learning_rate = 0.9;
  plan.training.momentum = 0;
  plan.training.weight_decay = 0.5;
  const QuantizationResult result = quantized(plan, "run", silent);
  ASSERT_LT(row(result, "trained").accuracies.validation->correct(),
            row(result, "calibrated").accuracies.validation->correct());
  EXPECT_EQ(result.chosen, "calibrated");
  EXPECT_EQ(bytes("run/checkpoint.safetensors"), bytes("run/calibrated/checkpoint.safetensors"));
  EXPECT_TRUE(RunDirectory::open(path("run")).is_calibrated());
  EXPECT_FALSE(fs::exists(path("run/metrics.jsonl")));
  EXPECT_NEAR(row(result, "integers").accuracies.test->accuracy(),
              row(result, "calibrated").accuracies.test->accuracy(), 0.1);
}

TEST_F(QuantizationRunTest, ChoosesBetweenMovingAveragesAndEstimates) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float", 8, "norm.json"), "float");
  EXPECT_EQ(plan.training.reestimate, 50);
  const QuantizationResult result = quantized(plan, "run", silent);
  EXPECT_EQ(names(result), (std::vector<std::string>{"float", "calibrated", "trained", "re-estimated", "integers"}));
  // The stage has both, so that either can be told apart.
  const Safetensors stage = read_safetensors(path("run/trained/checkpoint.safetensors"));
  const float average = *stage.tensors.at("trained:conv1/moving_mean").data<float>();
  const float estimate = *stage.tensors.at("conv1/moving_mean").data<float>();
  EXPECT_NE(average, estimate);
  EXPECT_NE(row(result, "trained").accuracies.test->loss, row(result, "re-estimated").accuracies.test->loss);
  const Safetensors run = read_safetensors(path("run/checkpoint.safetensors"));
  EXPECT_EQ(*run.tensors.at("conv1/moving_mean").data<float>(), result.chosen == "trained" ? average : estimate);
}

TEST_F(QuantizationRunTest, StoppedAnywhereItGoesOnToTheSameBits) {
  QuantizationPlan plan = plan_for(float_run("float", 8, "norm.json"), "float");
  plan.calibrate.batches = 2;
  plan.training.steps = 4;
  plan.training.reestimate = 2;
  plan.training.rewrite.bits_config = path("bits.json").string();
  load_layer_bits(plan.training.rewrite);
  Listener counting;
  quantized(plan, "run0-", counting);
  const std::vector<std::string> whole = content("run0-");
  EXPECT_GT(counting.asked, 15);
  for (std::int64_t last = 1; last <= counting.asked; last += testing::tries_all_cases() ? 2 : 5) {
    SCOPED_TRACE(last);
    const std::string name = "run" + std::to_string(last) + "-";
    Listener stopping(last), silent;
    EXPECT_THROW(quantized(plan, name, stopping), Stopped);
    EXPECT_TRUE(stopping.said("go on with: miniqat quantize --resume --out "));
    EXPECT_FALSE(is_quantized(resumed_quantization(path(name))));
    EXPECT_TRUE(std::filesystem::exists(path(name) / "machine.json")) << "for a report of it";
    resumed(name, silent);
    const std::vector<std::string> found = content(name);
    ASSERT_EQ(found.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      ASSERT_TRUE(found[i] == whole[i]) << found[i].substr(0, 3000) << "\n" << whole[i].substr(0, 3000);
  }
}

TEST_F(QuantizationRunTest, WithoutIntegersItSaysWhy) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float"), "float");
  plan.training.rewrite.scope = "conv1";
  const QuantizationResult result = quantized(plan, "run", silent);
  EXPECT_TRUE(silent.said("the float run was trained with them"));
  EXPECT_EQ(names(result), (std::vector<std::string>{"float", "calibrated", "trained"}));
  EXPECT_TRUE(testing::mentions(result.no_integers, {"eval_graph.json", "--scope conv1"})) << result.no_integers;
  EXPECT_EQ(json("run/quantize.json")["no_integers"], result.no_integers);
}

TEST_F(QuantizationRunTest, WhatCannotBeCalibratedLeavesNothing) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float"), "float");
  plan.training.rewrite.scope = "nowhere";
  EXPECT_THROW(quantized(plan, "run", silent), Error);
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(QuantizationRunTest, FindsWrongSettingsOfTheTrainingBeforeTheCalibration) {
  Listener silent;
  QuantizationPlan plan = plan_for(float_run("float", 0, "norm.json"), "float");
  plan.training.rewrite.freeze_bn_delay = 0;
  const std::string text = testing::error_of([&] { quantized(plan, "run", silent); });
  EXPECT_TRUE(testing::mentions(text, {"--reestimate"})) << text;
  EXPECT_EQ(silent.asked, 0);
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(QuantizationRunTest, ATrainingThatFailsLeavesTheCalibratedNetwork) {
  Listener listener;
  QuantizationPlan plan = plan_for(float_run("float", 8), "float");
  plan.training.learning_rate = 1e30;
  const QuantizationResult result = quantized(plan, "run", listener);
  EXPECT_EQ(names(result), (std::vector<std::string>{"float", "calibrated", "integers"}));
  EXPECT_EQ(result.chosen, "calibrated");
  EXPECT_TRUE(testing::mentions(result.training_failed, {"in step", "--learning-rate"})) << result.training_failed;
  EXPECT_EQ(std::ranges::count(listener.warnings, "warning: the training failed: " + result.training_failed), 1);
  EXPECT_EQ(bytes("run/checkpoint.safetensors"), bytes("run/calibrated/checkpoint.safetensors"));
  EXPECT_EQ(json("run/quantize.json")["training_failed"], result.training_failed);
  EXPECT_TRUE(is_quantized(resumed_quantization(path("run"))));
}

TEST_F(QuantizationRunTest, GoesOnWithTheFloatRunThatItBeganWith) {
  const FloatRun run = float_run("float");
  QuantizationPlan plan{.run = path("float").string()};
  plan.training = quantization_defaults(run);
  settle(plan, run, {});
  const RunDirectory out = new_quantization(path("run"), RunDirectory::Existing::kRefuse);
  write_plan(plan, out);
  EXPECT_EQ(json("run/quantize.json")["run_hash"], variables_hash(run.checkpoint_name));
  EXPECT_EQ(float_source(read_plan(out)).path, plan.run);
  Safetensors changed = run.checkpoint;
  changed.tensors.at("fc/biases") = Tensor(Shape{10});
  write_safetensors(path("float/checkpoint.safetensors"), changed);
  const std::string text = testing::error_of([&] { float_source(read_plan(out)); });
  EXPECT_TRUE(testing::mentions(text, {plan.run, "has changed since this one began", "--overwrite"})) << text;
  Json earlier = json("run/quantize.json");
  earlier.erase("run_hash");
  place_.write("run/quantize.json", earlier.dump());
  EXPECT_EQ(float_source(read_plan(out)).path, plan.run) << "a plan of an earlier version";
}

TEST_F(QuantizationRunTest, ReadsOnlyItsOwnPlan) {
  const auto refused = [&](const std::string& text) {
    place_.write("run/quantize.json", text);
    return testing::error_of([&] { read_plan(resumed_quantization(path("run"))); });
  };
  EXPECT_TRUE(testing::mentions(refused("[]"), {"quantize.json", "must be an object"}));
  EXPECT_TRUE(testing::mentions(refused("{"), {"quantize.json"}));
  EXPECT_TRUE(testing::mentions(refused(R"({"run": 3})"), {"quantize.json", "\"run\""}));
  EXPECT_TRUE(testing::mentions(refused(R"({"run": "x", "calibration": {}, "training": {"epoch": 3}})"),
                                {"quantize.json", "\"epoch\"", "epochs"}));
}

}  // namespace
}  // namespace miniqat::training::quantization_run_test
