// The command on the page of `miniqat report` is the one that was typed: a shell runs it, and the checkpoints are
// equal.

#include <gtest/gtest.h>

#include "core/text/error.h"
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

  /// As pasted into a shell, once the run is somewhere else.
  void expect_made_again(const std::string& run) const {
    const std::string command = reported({run})[0]["command"];
    const std::string first = run + "-first";
    std::filesystem::rename(path(run), path(first));
    const std::string folder = std::filesystem::path(program_path()).parent_path().string();
    const Outcome outcome =
        Program(Program::Line{{"/bin/sh", "-c", concat("PATH='", folder, "':$PATH; ", command)}}, place_.path()).wait();
    ASSERT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
    EXPECT_EQ(checkpoint_bytes(run), checkpoint_bytes(first)) << command;
  }
};

TEST_F(ReportCommandTest, MakesATrainingAgain) {
  place_.write("bits.json", R"({"conv1": {"weight_bits": 2, "activation_bits": 8}, "*": 6})");
  expect_success(
      train("it's $HOME & more",
            "--bits-config bits.json --stop-at 7 --seed 3 --validation 8 --full-range-weights=false --optimizer adam"));
  expect_made_again("it's $HOME & more");
}

/// The schedule of the first steps is that of the shorter run.
TEST_F(ReportCommandTest, MakesALongerTrainingAgain) {
  expect_success(train("run", {"--steps", "0", "--epochs", "1", "--stop-at", "2"}));
  for (const Arguments& more : {Arguments{"--epochs", "2"}, {"--epochs", "4", "--stop-at", "30"}, {}, {}})
    expect_success(resume("run", more));
  const std::string go_on = " && miniqat train --resume --log-every 1 --out run";
  const std::string command = reported({"run"})[0]["command"];
  EXPECT_TRUE(command.ends_with(concat(" --stop-at 2", go_on, " --epochs 2", go_on, " --epochs 4 --stop-at 30", go_on)))
      << command << "\nthe last --resume found a complete run";
  expect_made_again("run");
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
