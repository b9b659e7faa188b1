// What `miniqat verify` makes of its bounds, given scores that no run would give at will.

#include "cli/display/verify_report.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/errors.h"

namespace miniqat::cli::verify_report_test {
namespace {

using testing::expect_text;
using testing::mentions;
using namespace training;

constexpr std::int64_t kExamples = 200;

Score score(const std::string& name, std::int64_t correct, std::int64_t agreeing) {
  return {{.correct = correct, .examples = kExamples}, name, agreeing};
}

LayerComparison layer(const std::string& name, int alone, int end_to_end) {
  return {.operation = name,
          .type = "Conv2D",
          .tensor = name + "/out",
          .alone = {.count = 1000, .equal = 990, .largest = alone},
          .end_to_end = {.count = 1000, .equal = 900, .largest = end_to_end}};
}

/// Accuracies of 90% and 89.5%, the same class for 95%, operations up to two steps apart (nine from the picture on).
VerifyReport report() {
  VerifyReport report;
  report.verification.simulated = score("simulated", 180, 190);
  report.verification.integer = score("integer", 179, kExamples);
  report.verification.layers = {layer("conv", 0, 0), layer("depthwise", 2, 5), layer("fc", 1, 9)};
  report.verification.reference_examples = 10;
  report.runtimes = {score("litert 1", 179, kExamples), score("onnxruntime 2", 178, 198)};
  return report;
}

/// One bound that was given, of the report: whether it holds, as every way to ask for that says; and its value.
void expect_bound(const VerifyReport& report, const std::string& name, bool holds, double value) {
  const std::vector<BoundCheck> checks = report.checks();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].name, name);
  EXPECT_EQ(checks[0].faults.empty(), holds);
  EXPECT_EQ(report.broken(), checks[0].faults);
  ASSERT_TRUE(checks[0].value.has_value());
  EXPECT_NEAR(*checks[0].value, value, 1e-9);
  const nlohmann::ordered_json json = report.json();
  EXPECT_EQ(json["passed"], holds);
  EXPECT_EQ(json["bounds"].size(), 1u);
  EXPECT_EQ(json["bounds"][name]["bound"], checks[0].bound);
  EXPECT_EQ(json["bounds"][name]["value"], *checks[0].value);
  EXPECT_EQ(json["bounds"][name]["holds"], holds);
}

TEST(VerifyReport, WhatNobodyBoundsIsNotBroken) {
  VerifyReport given = report();
  given.failed = {"onnx failed: no memory"};
  EXPECT_TRUE(given.checks().empty());
  EXPECT_TRUE(given.broken().empty());
  EXPECT_EQ(given.json()["passed"], true);
}

/// What is compared with a bound, whether that holds, and the words where it does not.
struct BoundCase {
  std::function<void(VerifyReport&)> change;
  const char* name;
  double value;
  bool holds;
  std::vector<std::string> broken;
};

TEST(VerifyReport, EachBoundIsComparedWithItsValue) {
  const std::vector<std::string> two_steps = {"depthwise: 2 steps apart, more than 1"}, no_memory = {"onnx: no memory"};
  const std::vector<BoundCase> cases = {
      {[](auto& r) { r.bounds.accuracy_difference = 100; }, "max_accuracy_difference", 0.5, true, {}},
      {[](auto& r) { r.bounds.accuracy_difference = 0.5; }, "max_accuracy_difference", 0.5, true, {}},
      {[](auto& r) { r.bounds.accuracy_difference = 0.49; },
       "max_accuracy_difference",
       0.5,
       false,
       {"accuracies, simulated and of the integer engine, differ by 0.500 points, more than 0.49"}},
      {[](auto& r) { r.bounds.accuracy_difference = 0, r.verification.integer.correct = 181; },
       "max_accuracy_difference",
       0.5,
       false,
       {"accuracies, simulated and of the integer engine, differ by 0.500 points, more than 0"}},
      {[](auto& r) { r.bounds.agreement = 95; }, "min_agreement", 95, true, {}},
      {[](auto& r) { r.bounds.agreement = 100; },
       "min_agreement",
       95,
       false,
       {"simulated and the integer engine choose the same class for 95.000%, less than 100%"}},
      // Of operations given equal inputs, a line for each.
      {[](auto& r) { r.bounds.steps = 2; }, "max_steps", 2, true, {}},
      {[](auto& r) { r.bounds.steps = 1; }, "max_steps", 2, false, two_steps},
      // Of the worst runtime; one that failed has none.
      {[](auto& r) { r.bounds.runtime_agreement = 99; }, "min_runtime_agreement", 99, true, {}},
      {[](auto& r) { r.bounds.runtime_agreement = 0, r.failed = {"onnx: no memory"}; }, "min_runtime_agreement", 99,
       false, no_memory}};
  for (const BoundCase& one : cases) {
    VerifyReport given = report();
    one.change(given);
    expect_bound(given, one.name, one.holds, one.value);
    EXPECT_EQ(given.broken(), one.broken);
  }
  VerifyReport given = report();
  given.bounds.steps = 0;
  EXPECT_EQ(given.broken().size(), 2u);
  given.bounds.steps.reset();
  given.bounds.runtime_agreement = 99.5;
  EXPECT_TRUE(mentions(given.broken().at(0), {"onnxruntime 2", "99.000%", "99.5%"}));
}

TEST(VerifyReport, NetworksWithoutClassesAgreeWhereAllOutputsAreEqual) {
  VerifyReport given = report();
  given.bounds.agreement = 100;
  given.verification.integer.measure = training::Measure{};
  EXPECT_EQ(given.broken(), std::vector<std::string>{
                                "simulated and the integer engine have equal outputs for 95.000%, less than 100%"});
}

TEST(VerifyReport, BoundsHoldForBothArithmetics) {
  VerifyReport given = report();
  given.verification.on_integers =
      OnIntegers{.score = score("on integers", 177, 180), .layers = {layer("fc", 3, 3)}, .multiplying = {"fc"}};
  given.bounds = {.accuracy_difference = 0.5, .agreement = 95, .steps = 2, .runtime_agreement = {}};
  const std::vector<std::string> expected = {
      "accuracies, on integers and of the integer engine, differ by 1.000 points, more than 0.5",
      "on integers and the integer engine choose the same class for 90.000%, less than 95%",
      "fc, on integers: 3 steps apart, more than 2"};
  EXPECT_EQ(given.broken(), expected);
  const nlohmann::ordered_json bounds = given.json()["bounds"];
  EXPECT_EQ(bounds["max_steps"]["value"], 3);
  EXPECT_NEAR(bounds["max_accuracy_difference"]["value"], 1, 1e-9);
}

/// Both arithmetics stand below each other; long names lose their middle.
TEST(VerifyReport, TheTableFitsEightyColumns) {
  VerifyReport given = report();
  given.model = "a-network-with-a-long-name.onnx";
  given.dataset = "/home/somebody/recordings/of/many/speakers";
  given.verification.layers.push_back(layer("block_12/expand/Conv2D_and_more/BatchNorm", 1, 200));
  given.verification.on_integers = OnIntegers{
      .score = score("on integers", 177, 180), .layers = given.verification.layers, .multiplying = {"conv", "fc"}};
  given.left_out = {"left out: tflite: a model of 4 bits has no form there that keeps the integers of its biases"};
  for (const char* noun : {"picture", "example"}) {
    given.noun = noun;
    const std::string table = given.table();
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    expect_text(table, {concat("given equal inputs from the ", noun, " on\n"), "\nsimulated\n", "\non integers\n",
                        "\nblock_12/", "BatchNorm Conv2D", "a-network-with-a-long-name.onnx"});
    EXPECT_EQ(table.find(" *\n"), table.find(" *\n", table.find("\non integers\n"))) << "only on integers";
  }
}

TEST(VerifyReport, MinRuntimeAgreementNeedsARuntime) {
  VerifyReport given = report();
  given.runtimes.clear();
  given.bounds.runtime_agreement = 0;
  EXPECT_EQ(given.broken(), std::vector<std::string>{"no other runtime could run"});
  const nlohmann::ordered_json json = given.json();
  EXPECT_TRUE(json["bounds"]["min_runtime_agreement"]["value"].is_null());
  EXPECT_EQ(json["passed"], false);
}

TEST(VerifyReport, FastEngineAndReferenceLoopsMustNotDiffer) {
  VerifyReport given = report();
  expect_text(given.table(), {"reference loops: equal on 10 examples"});
  given.verification.reference_equal = false;
  EXPECT_EQ(given.broken(), std::vector<std::string>{"the fast engine and the reference loops differ"});
  EXPECT_EQ(given.json()["passed"], false);
  EXPECT_EQ(given.json()["reference_equal"], false);
  expect_text(given.table(), {"reference loops: NOT EQUAL on 10 examples"});
}

TEST(VerifyReport, EveryBrokenBoundHasItsLine) {
  VerifyReport given = report();
  given.verification.reference_equal = false;
  given.bounds = {.accuracy_difference = 0.1, .agreement = 99, .steps = 1, .runtime_agreement = 100};
  const std::vector<std::string> broken = given.broken();
  ASSERT_EQ(broken.size(), 5u);
  const std::vector<std::string> parts = {"reference loops", "accuracies", "simulated", "onnxruntime 2", "depthwise"};
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(mentions(broken[i], {parts[i]}));
}

TEST(VerifyReport, HundredPercentIsEveryOne) {
  VerifyReport given = report();
  given.verification.layers = {layer("nearly", 1, 1)};
  given.verification.layers[0].alone = {.count = 100'000'000, .equal = 99'999'999, .largest = 1};
  expect_text(given.table(), {"99.9999%"});
  given.verification.layers[0].alone = {.count = 100'000'000, .equal = 100'000'000, .largest = 0};
  EXPECT_EQ(given.table().find("99.9999%"), std::string::npos) << given.table();
  expect_text(given.table(), {"100.0000%"});
}

}  // namespace
}  // namespace miniqat::cli::verify_report_test
