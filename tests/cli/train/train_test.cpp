// `miniqat train` as a user runs it: the run directory, equal bytes for equal seeds, stopping and going on.

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The tiny classifier with its pool in a scope of its own, which holds no layer.
std::string with_scoped_pool() {
  std::string text = tiny_classifier();
  for (std::size_t place = 0; (place = text.find("pool1", place)) != std::string::npos; place += 9)
    text.replace(place, 5, "pools/one");
  return text;
}

class TrainTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    layers::register_ops();
    quantize::register_ops();
  }
};

TEST_F(TrainTest, ARunDirectoryHoldsEverything) {
  write_tiny_digits(place_, "large", 64, 20, 28);
  expect_success(
      program("train --model lenet5 --width 0.5 --weight-bits 4 --steps 5 --batch-size 16 --seed 7 --threads 1 "
              "--log-every 2 --dataset mnist --data-dir large --out run"));
  const Json config = json_of(path("run/config.json"));
  EXPECT_EQ(config["model"], "lenet5");
  EXPECT_EQ(config["width"], 0.5);
  EXPECT_EQ(config["weight_bits"], 4);
  EXPECT_EQ(config["activation_bits"], 8);
  EXPECT_EQ(config["threads"], 1);
  EXPECT_EQ(config["freeze_bn_delay"], nullptr);

  const Json summary = json_of(path("run/summary.json"));
  EXPECT_EQ(summary["model"], "lenet5");
  EXPECT_EQ(summary["dataset"], "mnist");
  EXPECT_EQ(summary["bits"], Json({{"weights", 4}, {"activations", 8}}));
  EXPECT_EQ(summary["steps"], 5);
  EXPECT_EQ(summary["seed"], 7);
  EXPECT_EQ(summary["threads"], 1);
  EXPECT_EQ(summary["machine"]["program"].get<std::string>().find("miniqat "), 0u);
  EXPECT_EQ(json_of(path("run/machine.json")), summary["machine"]);
  EXPECT_GT(summary["images_per_second"], 0);
  EXPECT_GT(summary["seconds"], 0);

  const auto losses = losses_of(path("run"));
  ASSERT_EQ(losses.size(), 3u) << "steps 2, 4 and the last";
  EXPECT_EQ(summary["train_loss"], losses.at(5));
  const Json last = lines_of(path("run/metrics.jsonl")).back();
  EXPECT_EQ(last["test_accuracy"], summary["test_accuracy"]);

  const Graph training = read_graph(path("run/train_graph.json"));
  const NamedTensors tensors = read_safetensors(path("run/checkpoint.safetensors")).tensors;
  for (const Node* node : training.nodes())
    if (node->type() == "Variable") {
      EXPECT_TRUE(tensors.contains(node->name())) << node->name();
    }
  EXPECT_TRUE(tensors.contains("optimizer:momentum/fc3/weights"));
  EXPECT_EQ(step_of(path("run")), 5);
  int quantizers = 0;
  const Graph evaluation = read_graph(path("run/eval_graph.json"));
  for (const Node* node : evaluation.nodes())
    if (const auto* quantizer = node->as<quantize::FakeQuant>()) {
      ++quantizers;
      EXPECT_FALSE(quantizer->is_training) << node->name();
    }
  EXPECT_EQ(quantizers, 10);

  const Outcome evaluated = expect_success(program("eval --run run --threads 1 --json"));
  EXPECT_EQ(Json::parse(evaluated.out)["accuracy"], summary["test_accuracy"]);
  EXPECT_EQ(Json::parse(evaluated.out)["examples"], 20);
  EXPECT_EQ(expect_success(program("eval --run run --checkpoint run --threads 1 --json")).out, evaluated.out);
}

TEST_F(TrainTest, VerboseTellsOfThePlansMemoryWheneverThePlanChanges) {
  const Outcome quiet = expect_success(train("quiet", "--quant-delay 5"));
  EXPECT_EQ(quiet.out.find("arena"), std::string::npos) << quiet.out;
  const Outcome verbose = expect_success(train("verbose", "--quant-delay 5 --verbose"));
  std::vector<std::string> lines;
  std::istringstream text(verbose.out);
  for (std::string line; std::getline(text, line);)
    if (line.find("arena") != std::string::npos) lines.push_back(line);
  ASSERT_EQ(lines.size(), 2u) << "once a plan, not once a step:\n" << verbose.out;
  EXPECT_TRUE(lines[0].starts_with("plan from step 1, ranges observed, not yet quantizing: ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("plan from step 5, quantizing: ")) << lines[1];
  for (const std::string& line : lines)
    expect_text(line, {" nodes (", " dropped) in ", " steps, arena ", " MB for ", "process peak"});
}

TEST_F(TrainTest, SameSeedAndThreadsGiveTheSameBytes) {
  expect_success(train("a", "--threads 2 --steps 3"));
  expect_success(train("b", "--threads 2 --steps 3"));
  expect_success(train("other", "--threads 2 --steps 3 --seed 2"));
  EXPECT_EQ(checkpoint_bytes("a"), checkpoint_bytes("b"));
  EXPECT_NE(checkpoint_bytes("a"), checkpoint_bytes("other"));
}

// Before quant_delay and at the end of an epoch; anywhere: tests/training/train/range_start_test.cpp.
TEST_F(TrainTest, AResumedRunEndsInTheSameBytes) {
  expect_success(train("whole", "--quant-delay 6"));
  const std::string wanted = checkpoint_bytes("whole");
  const auto losses = losses_of(path("whole"));
  ASSERT_EQ(losses.size(), 12u);
  for (const std::string stop : {"5", "8"}) {
    SCOPED_TRACE("stopped after step " + stop);
    const std::string run = "stopped" + stop;
    expect_text(expect_success(train(run, {"--quant-delay", "6", "--stop-at", stop})).out,
                {"miniqat train --resume --out " + run});
    EXPECT_EQ(step_of(path(run)), std::stoll(stop));
    EXPECT_EQ(json_of(path(run + "/summary.json"))["complete"], false);
    expect_success(resume(run));
    EXPECT_EQ(checkpoint_bytes(run), wanted);
    EXPECT_EQ(losses_of(path(run)), losses);
    EXPECT_EQ(json_of(path(run + "/summary.json"))["complete"], true);
  }
}

/// tiny.json is for batches of 4, of which a batch has two.
TEST_F(TrainTest, WithShardsThreadsDoNotChangeARunAndMayChangeInIt) {
  const Arguments sharded = "--shards 2 --batch-size 8";
  expect_text(expect_success(train("one", sharded)).out, {"12 steps of 8 in 2 shards of 1 thread, 1 thread,"});
  EXPECT_EQ(json_of(path("one/config.json"))["shards"], 2);
  EXPECT_EQ(json_of(path("one/config.json"))["threads_per_shard"], 1);
  expect_success(train("run", sharded + "--threads 2 --stop-at 5"));
  expect_success(resume("run", "--threads 1"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("one"));
}

TEST_F(TrainTest, AdamAndARunWithoutShufflingResumeAsWell) {
  const Arguments settings = "--optimizer adam --learning-rate 0.01 --no-shuffle --per-channel";
  expect_success(train("whole", settings));
  expect_success(train("stopped", settings + "--stop-at 5"));
  expect_success(resume("stopped"));
  EXPECT_EQ(checkpoint_bytes("stopped"), checkpoint_bytes("whole"));
}

TEST_F(TrainTest, ResumingACompleteRunChangesNothing) {
  expect_success(train("run"));
  const std::string summary = bytes_of(path("run/summary.json"));
  const std::string metrics = bytes_of(path("run/metrics.jsonl"));
  expect_text(expect_success(resume("run")).out, {"complete: 12 of 12"});
  EXPECT_EQ(bytes_of(path("run/summary.json")), summary);
  EXPECT_EQ(bytes_of(path("run/metrics.jsonl")), metrics);
}

TEST_F(TrainTest, StoppingBeforeTheCheckpointIsAUsageError) {
  expect_success(train("run", "--stop-at 6"));
  const std::string summary = bytes_of(path("run/summary.json"));
  expect_error(resume("run", "--stop-at 13"), 2, {"--stop-at 13", "the run ends at step 12 already"});
  expect_error(resume("run", "--stop-at 6"), 2, {"--stop-at 6", "step 6"});
  expect_error(resume("run", "--stop-at 4"), 2, {"--stop-at 4", "step 6"});
  EXPECT_EQ(bytes_of(path("run/summary.json")), summary);
}

TEST_F(TrainTest, ResumingKeepsToTheSettingsOfTheRun) {
  expect_success(train("run", "--stop-at 3"));
  expect_error(
      program("train --resume --weight-bits 4"), 2,
      {"--out names the run to go on with", "runs/lenet-synthetic-w4a8-symmetric-weights-seed1", "is not there"});
  fs::rename(path("digits"), path("moved"));
  expect_success(resume("run", "--data-dir moved --seed 1"));
}

TEST_F(TrainTest, AnEditedModelFileDoesNotChangeTheRun) {
  expect_success(train("whole"));
  expect_success(train("run", "--stop-at 3"));
  std::string model = bytes_of(path("tiny.json"));
  const std::size_t relu = model.find("\"Relu\"");
  ASSERT_NE(relu, std::string::npos) << model;
  place_.write("tiny.json", model.replace(relu, 6, "\"Relu6\""));
  expect_success(resume("run"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("whole"));
}

TEST_F(TrainTest, AModelThatHasChangedIsNotResumed) {
  expect_success(train("run", "--stop-at 3"));
  const std::string before = checkpoint_bytes("run");
  std::string model = bytes_of(path("run/model_graph.json"));
  const std::size_t relu = model.find("\"Relu\"");
  ASSERT_NE(relu, std::string::npos) << model;
  place_.write("run/model_graph.json", model.replace(relu, 6, "\"Relu6\""));
  expect_error(resume("run"), 1, {"run/train_graph.json", "tiny.json", "changed"});
  EXPECT_EQ(checkpoint_bytes("run"), before);
}

TEST_F(TrainTest, ARunKilledBeforeItsFirstCheckpointStartsAnew) {
  expect_success(train("whole"));
  fs::create_directory(path("killed"));
  fs::copy_file(path("whole/config.json"), path("killed/config.json"));
  expect_success(resume("killed"));
  EXPECT_EQ(checkpoint_bytes("killed"), checkpoint_bytes("whole"));
}

TEST_F(TrainTest, AScopeWithoutLayersIsNoQuantizedRun) {
  place_.write("pools.json", with_scoped_pool());
  expect_error(train("run", "--model pools.json --scope pools"), 1,
               {"nothing in pools.json was quantized", "\"pools\""});
  expect_error(program("rewrite --graph pools.json --scope pools --strict"), 1,
               {"--strict: no layer is in scope \"pools\""});
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainTest, AFloatRunStartsAQuantizedOne) {
  expect_success(train("float", "--float"));
  // A rate of nothing: after one step the weights are still those of the float run.
  const Outcome outcome =
      expect_success(train("qat", "--init-checkpoint float --steps 1 --learning-rate 0 --weight-decay 0"));
  expect_text(outcome.out, {"From float/checkpoint.safetensors: 4 variables restored"});
  EXPECT_NE(outcome.out.find("conv1/weights_quant/min"), std::string::npos) << "new variables are listed";
  const NamedTensors before = read_safetensors(path("float/checkpoint.safetensors")).tensors;
  const NamedTensors after = read_safetensors(path("qat/checkpoint.safetensors")).tensors;
  for (const std::string name : {"conv1/weights", "conv1/biases", "fc/weights", "fc/biases"}) {
    const auto old_values = before.at(name).values<float>();
    const auto new_values = after.at(name).values<float>();
    EXPECT_TRUE(std::ranges::equal(old_values, new_values)) << name;
  }
  EXPECT_LT(*after.at("conv1/weights_quant/min").data<float>(), 0);
}

TEST_F(TrainTest, FlagsWinOverTheConfigFile) {
  place_.write("settings.json", R"({"model": "tiny.json", "dataset": "mnist", "data_dir": "digits", "threads": 1,
                                    "steps": 7, "seed": 5, "learning_rate": 0.01, "weight_bits": 4})");
  const auto with_config = [&](const std::string& file, const std::string& out, const Arguments& more = {}) {
    return program(Arguments{"train", "--config", file, "--out", out} + more);
  };
  expect_success(with_config("settings.json", "run", {"--seed", "6", "--activation-bits", "6"}));
  const Json config = json_of(path("run/config.json"));
  EXPECT_EQ(config["seed"], 6);
  EXPECT_EQ(config["steps"], 7);
  EXPECT_EQ(config["learning_rate"], 0.01);
  EXPECT_EQ(config["weight_bits"], 4);
  EXPECT_EQ(config["activation_bits"], 6);
  EXPECT_EQ(config["batch_size"], 4) << "as the graph file has it";

  expect_success(with_config("run/config.json", "again"));
  EXPECT_EQ(bytes_of(path("again/config.json")), bytes_of(path("run/config.json")));
  EXPECT_EQ(checkpoint_bytes("again"), checkpoint_bytes("run"));
}

TEST_F(TrainTest, ASecondRunLeavesTheFirstAlone) {
  expect_success(train("run"));
  std::map<fs::path, std::pair<std::string, fs::file_time_type>> before;
  for (const auto& entry : fs::directory_iterator(path("run")))
    before[entry.path()] = {bytes_of(entry.path()), fs::last_write_time(entry.path())};
  EXPECT_EQ(before.size(), 10u);
  expect_error(train("run", "--seed 2"), 1, {"run holds a run already", "--resume"});
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(path("run"))) {
    ++files;
    ASSERT_TRUE(before.contains(entry.path())) << entry.path();
    EXPECT_EQ(bytes_of(entry.path()), before[entry.path()].first) << entry.path();
    EXPECT_EQ(fs::last_write_time(entry.path()), before[entry.path()].second) << entry.path();
  }
  EXPECT_EQ(files, before.size());
}

TEST_F(TrainTest, ADirectoryThatCannotBeMadeIsNamed) {
  expect_error(train("tiny.json/run"), 1, {"tiny.json/run"});
  expect_error(train("tiny.json"), 1, {"tiny.json"});
}

// The checkpoint of step 5 survives: after a higher rate was written into the settings, step 7 fails.
TEST_F(TrainTest, TheLastGoodCheckpointOutlivesANan) {
  expect_success(train("run", "--schedule constant --stop-at 5"));
  const std::string good = checkpoint_bytes("run");
  Json config = json_of(path("run/config.json"));
  config["learning_rate"] = 1e30;
  place_.write("run/config.json", config.dump());
  expect_error(resume("run"), 1, {"step 7"});
  EXPECT_EQ(checkpoint_bytes("run"), good);
  config["learning_rate"] = 0.05;
  place_.write("run/config.json", config.dump());
  expect_success(resume("run"));
  expect_success(train("whole", "--schedule constant"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("whole"));
}

// Step 1 has a good loss and makes the weights infinite: what a stop right then would write must not replace step 0.
TEST_F(TrainTest, WeightsThatAreNotFiniteAreNotSaved) {
  expect_error(train("run", "--learning-rate 3e38 --weight-decay 1e3 --schedule constant --stop-at 1"), 1, {"step 1"});
  EXPECT_EQ(step_of(path("run")), 0);
}

}  // namespace
}  // namespace miniqat::testing::train_test
