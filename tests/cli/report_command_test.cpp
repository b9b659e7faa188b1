// The command on the page of `miniqat report` makes the run once more: a shell runs it, and the checkpoints are equal.

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::report_command_test {
namespace {

class ReportCommandTest : public TinyTaskTest {
 protected:
  std::vector<nlohmann::json> reported(const Arguments& runs) const {
    const Outcome outcome = program("report --out report.html --threads 1 --pictures 0" + runs);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return report_data(path("report.html"))["runs"];
  }

  /// As pasted into a shell.
  void expect_made_again(const std::string& run) const {
    const std::string command = reported({run})[0]["command"];
    const std::string folder = std::filesystem::path(program_path()).parent_path().string();
    const Outcome outcome =
        Program(Program::Line{{"/bin/sh", "-c", concat("PATH='", folder, "':$PATH; ", command)}}, place_.path()).wait();
    ASSERT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
    EXPECT_EQ(checkpoint_bytes(run + "-again"), checkpoint_bytes(run)) << command;
  }
};

TEST_F(ReportCommandTest, MakesATrainingAgain) {
  place_.write("bits.json", R"({"conv1": {"weight_bits": 2, "activation_bits": 8}, "*": 6})");
  expect_success(
      train("it's $HOME & more",
            "--bits-config bits.json --stop-at 7 --seed 3 --validation 8 --full-range-weights=false --optimizer adam"));
  expect_made_again("it's $HOME & more");
  // As a process leaves it that was killed.
  std::filesystem::remove(path("it's $HOME & more/summary.json"));
  std::filesystem::remove_all(path("it's $HOME & more-again"));
  expect_made_again("it's $HOME & more");
}

/// The schedule of the first steps is that of the shorter run.
TEST_F(ReportCommandTest, MakesALongerTrainingAgain) {
  const auto go_on = [&](const Arguments& more) { expect_success(program("train --resume --out run" + more)); };
  const auto command = [&] { return reported({"run"})[0]["command"].get<std::string>(); };
  expect_success(train("run", "--steps 0 --epochs 1 --stop-at 2"));
  go_on({"--epochs", "2"});
  go_on({"--epochs", "4", "--stop-at", "30"});
  expect_text(command(), {"--epochs 1 --stop-at 2 --out run-again && miniqat train --resume --epochs 2 --out"});
  expect_made_again("run");
  // Lengths that are no whole epochs; and one that no step has followed.
  std::filesystem::remove_all(path("run-again"));
  go_on({"--steps", "55"});
  expect_text(command(), {"--steps 55"});
  expect_made_again("run");
  const std::string before = command();
  std::ofstream(path("run/metrics.jsonl"), std::ios::app) << R"({"step":55,"steps_before":55,"steps":60})"
                                                          << "\n";
  std::filesystem::remove(path("run/summary.json"));
  EXPECT_EQ(command(), before);
}

TEST_F(ReportCommandTest, MakesEstimatesAgain) {
  expect_success(train("norm", "--model norm.json --shards 2"));
  expect_success(program("reestimate norm --batches 3 --seed 5 --threads 1"));
  expect_made_again("norm");
}

TEST_F(ReportCommandTest, MakesACalibrationAgain) {
  expect_success(train("float", "--float"));
  expect_success(
      program("calibrate float --dataset fashion-mnist --data-dir digits --batches 2 --method minmax --weight-bits 4 "
              "--threads 1 --out ptq"));
  expect_made_again("ptq");
}

TEST_F(ReportCommandTest, MakesAQuantizationAgain) {
  expect_success(train("float", "--float"));
  expect_success(
      program("quantize float --batches 2 --epochs 1 --seed 7 --weight-bits 2 --learning-rate 0.003 --schedule "
              "constant --validation 8 --threads 1 --method minmax --out run"));
  expect_made_again("run");
  const std::string brief = reported({"run"})[0]["listed"]["command"];
  EXPECT_EQ(brief,
            "quantize float --method minmax --batches 2 --weight-bits 2 --epochs 1 --learning-rate 0.003 "
            "--schedule constant --seed 7");
}

TEST_F(ReportCommandTest, MakesAQuantizationWithItsOwnFoldingAgain) {
  expect_success(train("float", "--float --model norm.json"));
  const auto quantize = [&](const Arguments& more) {
    const Arguments line =
        "quantize float --batches 2 --epochs 1 --weight-bits 4 --threads 1 --out run --overwrite" + more;
    expect_success(program(line));
    return std::string(reported({"run"})[0]["listed"]["command"]);
  };
  EXPECT_EQ(quantize({}), "quantize float --batches 2 --weight-bits 4 --epochs 1");
  expect_made_again("run");
  std::filesystem::remove_all(path("run-again"));
  EXPECT_EQ(quantize({"--bn-fold", "tf"}),
            "quantize float --batches 2 --weight-bits 4 --per-channel --bn-fold tf --epochs 1");
  expect_made_again("run");
}

TEST_F(ReportCommandTest, NumbersRunsOfOneName) {
  expect_success(train("a/run"));
  expect_success(train("b/run", "--seed 2"));
  const auto names = [&](const Arguments& runs) {
    Arguments found;
    for (const nlohmann::json& run : reported(runs)) found.push_back(run["name"]);
    return found;
  };
  EXPECT_EQ(names({"a/run", "b/run"}), (Arguments("a/run b/run")));
  EXPECT_EQ(names({"a/run", "b/run", "a/run"}), (Arguments{"a/run (1)", "b/run", "a/run (2)"}));
}

}  // namespace
}  // namespace miniqat::testing::report_command_test
