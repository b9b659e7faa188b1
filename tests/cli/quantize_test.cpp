// `miniqat quantize`: one command from a float run to integers, whose result other commands take as a run.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "core/engine/session.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::quantize_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Data, and two float runs on them that all tests share.
class QuantizeTest : public SharedPlaceTest<QuantizeTest> {
 public:
  static void make() {
    for (const std::string name : {"tiny", "norm"}) make_float_run(*place_, name, name);
  }

 protected:
  static Arguments command(const std::string& out, const Arguments& more = {}, const std::string& run = "tiny") {
    const Arguments line = "quantize --weight-bits 4 --activation-bits 4 --threads 1 --epochs 2 --batches 8" +
                           Arguments{"--run", run, "--out", out} + more;
    return line;
  }
  static Outcome quantize(const std::string& out, const Arguments& more = {}, const std::string& run = "tiny") {
    return program(command(out, more, run));
  }
};

std::vector<std::string> text_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool has_line(const std::string& text, const std::string& start, const std::string& part) {
  return std::ranges::any_of(text_lines(text), [&](const std::string& line) {
    return line.starts_with(start) && line.find(part) != std::string::npos;
  });
}

TEST_F(QuantizeTest, PrintsATableAndMakesARunThatEveryCommandTakes) {
  const Outcome outcome = expect_success(quantize("run", {}, "norm"));
  EXPECT_TRUE(has_line(outcome.out, "8 training pictures, 0 to 1 of each of 10 classes, decide",
                       "; the float run was trained with them"))
      << outcome.out;
  EXPECT_TRUE(has_line(outcome.out, "network", "bit operations")) << outcome.out;
  EXPECT_TRUE(has_line(outcome.out, "float ", "2,760")) << outcome.out;
  for (const std::string name : {"calibrated", "trained", "re-estimated", "integers"})
    EXPECT_TRUE(has_line(outcome.out, name, "394")) << name << " " << outcome.out;
  const std::string chosen = json_of(path("run/quantize.json"))["chosen"];
  EXPECT_TRUE(has_line(outcome.out, chosen + " *", "")) << outcome.out;
  EXPECT_TRUE(has_line(outcome.out, "* the run holds the " + chosen, "")) << outcome.out;
  EXPECT_TRUE(has_line(outcome.out, "done in ", "run directory run")) << outcome.out;

  const Json summary = json_of(path("run/summary.json"));
  const Outcome eval = expect_success(program({"eval", "--run", "run", "--json"}));
  EXPECT_EQ(Json::parse(eval.out)["accuracy"], summary["test_accuracy"]);
  EXPECT_EQ(
      Json::parse(expect_success(program({"eval", "--run", "run", "--split", "validation", "--json"})).out)["accuracy"],
      summary["validation_accuracy"]);
  EXPECT_EQ(Json::parse(expect_success(program({"eval", "--run", "run", "--integer", "--json"})).out)["accuracy"],
            json_of(path("run/quantize.json"))["rows"][4]["test_accuracy"]);
  expect_success(program({"export", "--run", "run", "--format", "miniqat", "--out", "model.miniqat"}));
  expect_success(program({"verify", "--run", "run", "--no-runtimes"}));
  expect_success(program({"inspect", "run"}));
  if (chosen != "calibrated") expect_success(program({"reestimate", "--run", "run", "--out", "again"}));
}

TEST_F(QuantizeTest, OtherCommandsLeaveWhatTheTableIsOf) {
  expect_success(quantize("table", {}, "norm"));
  for (const std::string run : {"table", "table/trained", "table/trained/"}) {
    const std::string checkpoint = bytes_of(path(run) / "checkpoint.safetensors");
    expect_error(program({"reestimate", "--run", run}), 2, {"--run: " + run, "quantize.json", "--out DIR"});
    EXPECT_TRUE(bytes_of(path(run) / "checkpoint.safetensors") == checkpoint) << run;
  }
  const std::string trained = bytes_of(path("table/trained/checkpoint.safetensors"));
  for (const std::string flag : {"--epochs", "--steps"})
    expect_error(program({"train", "--resume", "--out", "table/trained", flag, "100"}), 2,
                 {flag + ": table/trained holds the training of the run of quantize in ", "/table, whose table"});
  EXPECT_TRUE(bytes_of(path("table/trained/checkpoint.safetensors")) == trained);
  expect_success(program({"reestimate", "--run", "table/trained", "--out", "trained"}));
  expect_success(program({"reestimate", "--run", "trained"}));
}

TEST_F(QuantizeTest, AfterASignalOrDeathTheSameCommandGoesOn) {
  const Arguments endless = "--steps 100000000 --save-every 4";
  for (const int signal : {SIGINT, SIGKILL}) {
    const std::string run = "stopped" + std::to_string(signal);
    Arguments line = command(run);
    line.erase(std::ranges::find(line, "--epochs"), std::ranges::find(line, "--epochs") + 2);
    line.insert(line.end(), endless.begin(), endless.end());
    Program running(line, place_->path());
    running.wait_for_output("epoch");
    running.send(signal);
    const Outcome stopped = running.wait();
    EXPECT_EQ(stopped.status, 128 + signal) << stopped.err;
    EXPECT_EQ(stopped.out.find("go on with: miniqat quantize --resume --out " + run) != std::string::npos,
              signal == SIGINT);
    expect_error(quantize(run), 1, {run, "holds a run of quantize already", "--resume", "--overwrite"});
    expect_error(program({"eval", "--run", run}), 1,
                 {run + " holds a run of quantize that is not complete; miniqat quantize --resume --out " + run});
    const Arguments resume = {"quantize", "--resume", "--out", run};
    const auto with = [&](const Arguments& more) { return program(resume + more); };
    expect_error(with({"--epochs", "3"}), 2, {"--epochs: --resume takes the settings in quantize.json"});
    expect_error(with({"--method", "minmax"}), 2, {"--method: --resume takes the settings in quantize.json"});
    expect_error(with({"--run", "tiny"}), 2, {"--run: --resume takes"});
    expect_error(with({"--overwrite"}), 2, {"--overwrite deletes the run"});
    expect_error(program({"train", "--resume", "--out", run}), 2, {"--resume: " + run + " holds a run of quantize"});
    expect_error(with({"--threads", "2"}), 2, {"--threads differs from the run's own (1); leave it out to resume"});
    expect_error(with({"--threads", "1025"}), 2, {"--threads must be in 0..1024, got 1025"});
    // A shorter end for both, so that there is one.
    Json plan = json_of(path(run + "/quantize.json")), config = json_of(path(run + "/trained/config.json"));
    const std::int64_t end = step_of(path(run + "/trained")) + 3;
    plan["training"]["schedule"] = config["schedule"] = "constant";
    plan["training"]["steps"] = config["steps"] = end;
    // As if `train --resume --gradients float32` had changed the training.
    if (has_int8_products()) plan["training"]["gradients"] = "int8";
    place_->write(run + "/quantize.json", plan.dump());
    place_->write(run + "/trained/config.json", config.dump());
    expect_success(with({"--data-dir", "digits", "--threads", "1"}));
    EXPECT_EQ(json_of(path(run + "/summary.json"))["complete"], true);
    EXPECT_EQ(json_of(path(run + "/quantize.json"))["complete"], true);
    EXPECT_EQ(json_of(path(run + "/trained/config.json"))["gradients"], "float32");
    EXPECT_EQ(expect_success(with({})).out, "The run in " + run + " is complete; quantize.json has its figures.\n");
  }
}

/// As `train --resume`: with shards no number depends on the threads.
TEST_F(QuantizeTest, ARunWithShardsGoesOnWithOtherThreads) {
  expect_success(quantize("shards", {"--shards", "2", "--batch-size", "8"}));
  const std::string checkpoint = bytes_of(path("shards/checkpoint.safetensors"));
  Json plan = json_of(path("shards/quantize.json"));
  plan["complete"] = false;
  place_->write("shards/quantize.json", plan.dump());
  fs::remove(path("shards/checkpoint.safetensors"));
  expect_success(program({"quantize", "--resume", "--out", "shards", "--threads", "2"}));
  EXPECT_EQ(json_of(path("shards/quantize.json"))["training"]["threads"], 2);
  EXPECT_TRUE(bytes_of(path("shards/checkpoint.safetensors")) == checkpoint);
}

TEST_F(QuantizeTest, OverwritesOnlyWhenTold) {
  expect_success(quantize("old"));
  expect_error(quantize("old"), 1, {"old holds a run of quantize already"});
  expect_success(
      quantize("old", {"--overwrite", "--weight-bits", "8", "--activation-bits", "8", "--rounding", "adaptive"}));
  EXPECT_EQ(json_of(path("old/calibrated/summary.json"))["calibration"]["rounding"], "adaptive");
  for (const std::string stage : {"old", "old/calibrated", "old/trained"})
    EXPECT_EQ(json_of(path(stage + "/summary.json"))["quantization"], "W8A8");
  expect_error(quantize("tiny", {"--overwrite"}), 2, {"--overwrite would delete the run in --run"});
  expect_error(quantize("tiny"), 1, {"tiny holds a run already"});
}

TEST_F(QuantizeTest, WithoutIntegersItSaysWhy) {
  const Outcome outcome = expect_success(quantize("scoped", {"--scope", "fc"}));
  EXPECT_FALSE(has_line(outcome.out, "integers ", "")) << outcome.out;
  const std::size_t note = outcome.out.find("note: the network will not become integers: [");
  EXPECT_LT(note, outcome.out.find("step ")) << outcome.out;
  EXPECT_TRUE(has_line(outcome.out, "no integers: scoped/eval_graph.json", "--scope fc")) << outcome.out;
}

// Errors of examples without classes: the measure of their task is the AUC.
TEST_F(QuantizeTest, TheLossDecidesWhereNothingElseIsMeasured) {
  std::string rows = "a,b,c\n";
  for (int i = 0; i < 120; ++i) rows += concat(i * 7 % 31 - 15, ",", i * 11 % 29 - 14, ",", i * 5 % 23 - 11, "\n");
  place_->write("numbers.csv", rows);
  ASSERT_EQ(program("train --dataset numbers.csv --model autoencoder --width 0.25 --batch-size 10 --threads 1 --float" +
                    Arguments{"--epochs", "1", "--out", "numbers"})
                .status,
            0);
  ASSERT_EQ(quantize("by-loss", {}, "numbers").status, 0);
  EXPECT_EQ(json_of(path("by-loss/quantize.json"))["chosen_by"], "loss");
}

TEST_F(QuantizeTest, RefusesWhatCannotBe) {
  expect_error(program("quantize --resume --out none"), 1, {"none holds no run of quantize"});
  expect_success(quantize("quantized"));
  expect_error(quantize("none", {}, "quantized"), 1, {"is quantized already"});
  EXPECT_FALSE(fs::exists(path("none")));
}

}  // namespace
}  // namespace miniqat::testing::quantize_test
