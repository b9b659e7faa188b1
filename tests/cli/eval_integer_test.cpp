// `miniqat eval --integer`: a run as integers beside the same run simulated.

#include <gtest/gtest.h>

#include <cmath>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::eval_integer_test {
namespace {

using Json = nlohmann::json;

class EvalIntegerTest : public ProgramTest {
 protected:
  void SetUp() override {
    write_tiny_digits(place_, "digits", 64, 230);
    place_.write("tiny.json", tiny_classifier());
  }

  void train(const std::string& out, const Arguments& more) const {
    const Arguments line = "train --model tiny.json --dataset mnist --data-dir digits --steps 60 --threads 1" +
                           Arguments{"--out", out} + more;
    expect_success(program(line));
  }
  Outcome evaluate(const std::string& run, const Arguments& more) const {
    return program(Arguments{"eval", "--threads", "1", "--run", run} + more);
  }
  Json result(const std::string& run, Arguments more = {}) const {
    more.push_back("--json");
    return Json::parse(expect_success(evaluate(run, more)).out);
  }
};

TEST_F(EvalIntegerTest, IntegersAndSimulationAgree) {
  const std::vector<Arguments> quantizations = {
      {},
      {"--weight-bits", "4", "--activation-bits", "4", "--per-channel", "--ranges", "observed"},
      {"--quantize-input", "--activation-bits", "6", "--symmetric"}};
  for (std::size_t i = 0; i < quantizations.size(); ++i) {
    const std::string run = concat("run", i);
    train(run, quantizations[i]);
    const Json simulated = result(run);
    const Json integers = result(run, {"--integer"});
    EXPECT_EQ(simulated["integer"], false);
    EXPECT_EQ(integers["integer"], true);
    EXPECT_EQ(integers["examples"], 230) << "whole batches and what is left";
    EXPECT_GT(integers["accuracy"], 0.6) << run;
    EXPECT_LE(std::abs(simulated["correct"].get<int>() - integers["correct"].get<int>()), 2) << run;
    EXPECT_NEAR(simulated["loss"], integers["loss"].get<double>(), 0.02) << run;
    EXPECT_EQ(result(run, {"--integer", "--split", "train"})["examples"], 64);
  }
  expect_text(evaluate("run1", {"--integer"}).out, {"W4A4 per channel integers on mnist (test)"});
}

TEST_F(EvalIntegerTest, TheFirstPicturesOnly) {
  train("run", {});
  const Arguments of_file =
      "eval --model run.miniqat --dataset mnist --data-dir digits --json --threads 1 --examples 12";
  expect_success(program("export --run run --format miniqat --out run.miniqat"));
  EXPECT_EQ(Json::parse(expect_success(program(of_file)).out)["examples"], 12);
  for (const Arguments& how : {Arguments{}, Arguments("--integer")}) {
    const auto examples = [&](const std::string& limit, const std::string& split) {
      Arguments line = how;
      line.insert(line.end(), {"--examples", limit, "--split", split});
      return result("run", line)["examples"].get<int>();
    };
    EXPECT_EQ(examples("12", "test"), 12);
    EXPECT_EQ(examples("10", "train"), 10) << "no whole number of batches";
    EXPECT_EQ(examples("0", "test"), 230);
    EXPECT_EQ(examples("5000", "test"), 230);
  }
  expect_text(evaluate("run", {"--examples", "12"}).out, {"on mnist (first 12 of test): accuracy"});
  expect_text(evaluate("run", {"--examples", "230"}).out, {"on mnist (test): accuracy"});
}

TEST_F(EvalIntegerTest, RunsThatDoNotFitAreRefused) {
  train("run", {});
  write_tiny_digits(place_, "large", 8, 8, 9);
  expect_error(evaluate("run", "--integer --data-dir large"), 1, {"8,8,1]", "[9,9,1]"});
  train("wide", "--activation-bits 12");
  expect_error(evaluate("wide", {"--integer"}), 1,
               {"wide/eval_graph.json", "12 bits", "2 to 8", "--activation-bits of at most 8"});
  train("part", "--scope fc");
  expect_error(evaluate("part", {"--integer"}), 1, {"part/eval_graph.json", "has no range", "without --scope"});
  place_.write("run/checkpoint.safetensors", "no checkpoint");
  expect_error(evaluate("run", {"--integer"}), 1, {"run/checkpoint.safetensors"});
}

}  // namespace
}  // namespace miniqat::testing::eval_integer_test
