// `miniqat eval --integer`: a run as integers beside the same run simulated.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing {
namespace {

using Json = nlohmann::json;

class EvalIntegerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_digits(place_, "digits", 64, 230);
    place_.write("tiny.json", tiny_classifier());
  }

  void train(const std::string& out, const Arguments& more) const {
    Arguments line = {"train",   "--model", "tiny.json", "--dataset", "mnist", "--data-dir", "digits",
                      "--steps", "60",      "--threads", "1",         "--out", out};
    line.insert(line.end(), more.begin(), more.end());
    expect_success(miniqat(line, place_.path()));
  }
  Outcome evaluate(const std::string& run, const Arguments& more) const {
    Arguments line = {"eval", "--threads", "1", "--run", run};
    line.insert(line.end(), more.begin(), more.end());
    return miniqat(line, place_.path());
  }
  Json result(const std::string& run, Arguments more = {}) const {
    more.push_back("--json");
    const Outcome outcome = evaluate(run, more);
    expect_success(outcome);
    return Json::parse(outcome.out);
  }

  TempDir place_;
};

TEST_F(EvalIntegerTest, IntegersAndSimulationAgree) {
  const std::vector<Arguments> quantizations = {{},
                                                {"--weight-bits", "4", "--activation-bits", "4", "--per-channel"},
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
  const Outcome text = evaluate("run1", {"--integer"});
  EXPECT_NE(text.out.find("W4A4 per channel integers on mnist (test)"), std::string::npos) << text.out;
}

TEST_F(EvalIntegerTest, FloatRunsAreRefused) {
  train("run", {"--float"});
  expect_error(evaluate("run", {"--integer"}), 1,
               {"run/eval_graph.json", "float network", "train with quantization", "calibrate"});
}

TEST_F(EvalIntegerTest, RunsThatDoNotFitAreRefused) {
  train("run", {});
  expect_error(evaluate("run", {"--integer", "--dataset", "synthetic"}), 1, {"[8,8,1]", "[28,28,1]"});
  train("wide", {"--activation-bits", "12"});
  expect_error(evaluate("wide", {"--integer"}), 1,
               {"wide/eval_graph.json", "12 bits", "2 to 8", "--activation-bits of at most 8"});
  train("part", {"--scope", "fc"});
  expect_error(evaluate("part", {"--integer"}), 1, {"part/eval_graph.json", "has no range", "without --scope"});
  place_.write("run/checkpoint.safetensors", "no checkpoint");
  expect_error(evaluate("run", {"--integer"}), 1, {"run/checkpoint.safetensors"});
}

}  // namespace
}  // namespace miniqat::testing
