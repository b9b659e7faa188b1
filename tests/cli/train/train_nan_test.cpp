// A run that meets a NaN, and what is said of it then.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_nan_test {
namespace {

using TrainNanTest = TinyTaskTest;

TEST_F(TrainNanTest, SaysHowToGoOnAndTheRunCanBeOverwritten) {
  expect_error(train("run", "--learning-rate 1e30 --schedule constant"), 1,
               {"step 2", "the checkpoint of step 0 stays in run", "--overwrite", "lower --learning-rate"});
  EXPECT_EQ(step_of(path("run")), 0);
  EXPECT_NO_THROW(require_finite(read_safetensors(path("run/checkpoint.safetensors")).tensors, "the checkpoint"));
  expect_error(train("run"), 1, {"run holds a run already", "--overwrite"});
  expect_success(train("run", "--overwrite"));
  expect_success(train("whole"));
  EXPECT_TRUE(files_of(path("run")) == files_of(path("whole")));
}

/// Where the loss of no step tells, but numbers between the steps: learned ranges that begin, statistics of batch norms
/// at the end. From the checkpoint they would come to the same.
TEST_F(TrainNanTest, NumbersThatOverflowBetweenStepsAreNotMetAgain) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--learning-rate", "1e18", "--ranges", "learned", "--quant-delay", "3", "--steps", "3"},
       "has values that are not finite"},
      {{"--model", "norm.json", "--steps", "1", "--learning-rate", "1e20", "--weight-bits", "3", "--reestimate", "4"},
       "the network overflows on some examples: the new value of variable \"conv1/moving_variance\""}};
  for (const auto& [flags, what] : cases) {
    const Outcome failed = train("run", flags);
    expect_error(
        failed, 1,
        {what, "the checkpoint of step 0 stays in run", "begin anew with --overwrite", "a lower --learning-rate"});
    EXPECT_EQ(failed.err.find(" with: miniqat"), std::string::npos) << failed.err;
    expect_error(program("train --resume --out run"), 1, {what, "--overwrite", "a lower --learning-rate"});
    expect_text(program("eval --run run --threads 1").err, {"begin anew with --overwrite"});
    std::filesystem::remove_all(path("run"));
  }
}

/// `quantize` hands out the calibrated network, whether a loss or the statistics behind the last step are not finite.
TEST_F(TrainNanTest, QuantizeKeepsTheCalibratedNetwork) {
  expect_success(train("float", "--float --model norm.json"));
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {"--learning-rate 1e18 --steps 4 --ranges learned", "the loss became "},
      {"--learning-rate 1e20 --steps 1 --schedule constant --ranges observed --weight-bits 3 --reestimate 4",
       "the network overflows on some examples: the new value of variable \"conv1/moving_variance\""}};
  for (const auto& [flags, what] : cases) {
    const Outcome outcome = program("quantize float --batches 2 --threads 1 --out run" + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_text(outcome.err, {"the training failed: " + what});
    const auto result = json_of(path("run/quantize.json"));
    EXPECT_EQ(result["chosen"], "calibrated");
    for (const auto& row : result["rows"]) EXPECT_NE(row["name"], "trained");
    EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("run/calibrated"));
    expect_success(program("export run --out run.onnx"));
    std::filesystem::remove_all(path("run"));
  }
}

TEST_F(TrainNanTest, NamesADampeningThatIsOn) {
  expect_error(train("damp", "--dampening 1e30 --schedule constant"), 1,
               {"begin anew with --overwrite and, say, a lower --learning-rate or --dampening"});
  expect_text(program("eval --run damp --threads 1").err, {"a lower --learning-rate or --dampening)"});
  const Outcome without = train("wild", "--learning-rate 1e30 --schedule constant");
  EXPECT_EQ(without.err.find("--dampening"), std::string::npos) << without.err;
}

// What the advice is, the last attempt to go on decides.
TEST_F(TrainNanTest, IsRememberedUntilTheRunGoesOn) {
  expect_success(train("run", "--stop-at 8"));
  const auto note = [&] { return program("eval --run run --threads 1").err; };
  expect_text(note(), {"step 8 (miniqat train --resume goes on)"});
  std::ofstream(path("run/metrics.jsonl"), std::ios::app)
      << R"({"step": 11, "failure": "the loss became NaN"})" << '\n';
  expect_text(note(), {"step 8 (the loss became NaN; --resume would come to the same: begin anew with --overwrite"});
  expect_success(resume("run", "--stop-at 10"));
  expect_text(note(), {"step 10 (miniqat train --resume goes on)"});
  expect_success(resume("run"));
  EXPECT_EQ(note(), "");
  EXPECT_EQ(bytes_of(path("run/metrics.jsonl")).find("failure"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::testing::train_nan_test
