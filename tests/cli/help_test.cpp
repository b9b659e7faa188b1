// `--help` of every command: its width, and what of a long list comes first. "Did you mean": flags of other tools, and
// names of models and data sets without their flags.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/advice.h"
#include "core/text/error.h"
#include "core/text/utf8.h"
#include "tests/cli/program.h"
#include "tests/temp_dir.h"

namespace miniqat::testing::help_test {
namespace {

const std::vector<std::string> kCommands = {
    "train", "calibrate", "quantize", "reestimate", "sensitivity", "eval",   "predict", "import", "rewrite",
    "run",   "inspect",   "runs",     "report",     "models",      "export", "verify",  "bench",  "completion"};

std::string help_of(const Arguments& line) { return expect_success(miniqat(line)).out; }

std::set<std::string> flags_in(const std::string& help) {
  static const std::regex kFlag("^  (?:-.,)?(--[a-z0-9-]+)");
  std::set<std::string> flags;
  std::istringstream lines(help);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_search(line, match, kFlag)) flags.insert(match[1]);
  return flags;
}

void expect_within(const std::string& help, std::size_t columns) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(utf8::columns(line), columns) << line;
}

class Help : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("COLUMNS"); }
};

TEST_F(Help, OfEachCommandIsNoWiderThanItsReadersHaveColumns) {
  unsetenv("COLUMNS");
  for (const std::string& command : kCommands) expect_within(help_of({command, "--help-all"}), 80);
  expect_within(help_of({"--help"}), 80);
  for (const std::size_t columns : {60, 100}) {
    setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    for (const std::string command : {"train", "export", "bench"})
      expect_within(help_of({command, "--help-all"}), columns);
    expect_within(help_of({"--help"}), columns);
  }
  unsetenv("COLUMNS");
  expect_text(help_of({"--help"}), {"\n  MINIQAT_DATA_DIR            where data sets are, without --data-dir\n"});
  setenv("COLUMNS", "no number", 1);
  expect_within(help_of({"--help"}), 80);
}

TEST_F(Help, OfATrainingHasGroupsAndWhatAFirstWeekNeeds) {
  const std::string first = help_of({"train", "--help"}), all = help_of({"train", "--help-all"});
  std::size_t before = 0;
  for (const char* heading : {"\nData:\n", "\nNetwork:\n", "\nBits and ranges:\n", "\nSchedule:\n", "\nThe run:\n"}) {
    const std::size_t place = first.find(heading);
    ASSERT_NE(place, std::string::npos) << heading;
    EXPECT_LT(before, place) << heading;
    expect_text(all, {heading});
    before = place;
  }
  const std::set<std::string> few = flags_in(first), many = flags_in(all);
  // --help and --help-all are two of them.
  EXPECT_EQ(few.size(), 25u) << first;
  EXPECT_GT(many.size(), 60u);
  EXPECT_TRUE(std::ranges::includes(many, few));
  for (const char* flag :
       {"--dataset", "--model", "--weight-bits", "--epochs", "--out", "--resume", "--task", "--features", "--huber"})
    EXPECT_TRUE(few.contains(flag)) << flag;
  for (const char* flag : {"--ema-decay", "--profile", "--nesterov", "--stop-at"}) {
    EXPECT_FALSE(few.contains(flag)) << flag;
    EXPECT_TRUE(many.contains(flag)) << flag;
  }
  expect_text(first, {std::to_string(many.size() - few.size()) + " more flags: miniqat train --help-all"});
  EXPECT_EQ(all.find(" more flags"), std::string::npos);
  EXPECT_LT(std::ranges::count(first, '\n'), 60);
}

TEST_F(Help, OfShortListsIsWhole) {
  for (const std::string command : {"predict", "runs", "models"}) {
    const std::string first = help_of({command, "--help"});
    EXPECT_EQ(help_of({command, "--help-all"}), first);
    EXPECT_EQ(first.find("--help-all"), std::string::npos) << first;
  }
}

TEST_F(Help, TheVersionHasAShortFlag) {
  const std::string version = help_of({"--version"});
  EXPECT_TRUE(version.starts_with("miniqat ")) << version;
  EXPECT_EQ(help_of({"-V"}), version);
}

TEST(Suggestions, FlagsOfOtherToolsAreKnown) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"train", "--lr", "--learning-rate"},
      {"train", "--lr=0.1", "--learning-rate"},
      {"train", "--learning_rate", "--learning-rate"},
      {"train", "-lr", "--learning-rate"},
      {"train", "--batch", "--batch-size"},
      {"train", "--batch_size=4", "--batch-size"},
      {"train", "-b", "--batch-size"},
      {"train", "--bs", "--batch-size"},
      {"train", "--lr-schedule", "--schedule"},
      {"train", "--lr_scheduler_type", "--schedule"},
      {"train", "--gamma", "--schedule-factor"},
      {"train", "--step-size", "--schedule-every"},
      {"train", "--warmup", "--warmup-steps"},
      {"train", "--wd", "--weight-decay"},
      {"train", "--opt", "--optimizer"},
      {"train", "--arch", "--model"},
      {"train", "-a", "--model"},
      {"train", "--data", "--data-dir"},
      {"train", "--output-dir", "--out"},
      {"train", "--num-epochs", "--epochs"},
      {"train", "--max_steps", "--steps"},
      {"train", "-j", "--threads"},
      {"train", "--num_workers", "--threads"},
      {"train", "--random-state", "--seed"},
      {"train", "--pretrained", "--init-checkpoint"},
      {"train", "--print-freq", "--log-every"},
      {"train", "--save-freq", "--save-every"},
      {"train", "--validation-split", "--validation"},
      {"train", "--fp32", "--float"},
      {"train", "--wbits", "--weight-bits"},
      {"train", "--a-bits", "--activation-bits"},
      {"train", "--bits", "--weight-bits"},
      {"train", "--width-mult", "--width"},
      {"train", "--imgsz", "--image-size"},
      {"train", "--aug", "--augment"},
      {"train", "--shuffle", "--no-shuffle"},
      {"quantize", "--calib-batches", "--batches"},
      {"calibrate", "--calibration-method", "--method"},
      {"export", "--opset-version", "--opset"},
      {"export", "-o", "--out"},
      {"predict", "--topk", "--top"},
      {"eval", "--num-samples", "--examples"},
      {"bench", "--arch", "--models"},
      {"verify", "--output", "--out"}};
  for (const auto& [command, word, meant] : cases) {
    const Outcome outcome = miniqat({command, word, "1"});
    expect_error(outcome, 2, {concat("unknown argument \"", word, "\"; did you mean \"", meant, "\"?")});
  }
  // Only flags that the command has.
  EXPECT_EQ(miniqat("eval --lr 1").err.find("learning-rate"), std::string::npos);
  EXPECT_EQ(miniqat("inspect --batch 1").err.find("did you mean"), std::string::npos);
}

TEST(Suggestions, ANameWithoutItsFlagIsKnown) {
  const TempDir place;
  const auto asks = [&](const Arguments& line, const std::string& meant) {
    expect_error(miniqat(line, place.path()), 2, {concat("did you mean \"", meant, "\"?")});
  };
  asks("train lenet5", "--model lenet5");
  asks("train LeNet-5", "--model lenet5");
  asks("train --epochs 1 resnet", "--model resnet8");
  asks("train mobilenet", "--model mobilenet_v1");
  asks("train net.onnx", "--model net.onnx");
  asks("train mnist", "--dataset mnist");
  asks("train cifar-10", "--dataset cifar10");
  asks("models lenet5", "--model lenet5");
  asks("bench lenet5", "--models lenet5");
  asks("lenet5", "train --model lenet5");
  asks("lnet5", "train --model lenet5");
  asks("mnist", "train --dataset mnist");
  // Beside a run --model is a file.
  EXPECT_EQ(miniqat("eval run lenet5", place.path()).err.find("--model lenet5"), std::string::npos);
  // Where it has its flag: in any case.
  expect_error(miniqat("train --model LENET5", place.path()), 2, {"did you mean \"lenet5\"?"});
  EXPECT_EQ(miniqat("train surplus", place.path()).err.find("did you mean"), std::string::npos);
}

TEST(Suggestions, CommandsOfOtherToolsAreKnown) {
  for (const auto& [word, meant] : {std::pair<std::string, std::string>{"fit", "train"},
                                    {"evaluate", "eval"},
                                    {"test", "eval"},
                                    {"convert", "export"},
                                    {"infer", "predict"},
                                    {"ptq", "calibrate"},
                                    {"benchmark", "bench"},
                                    {"list", "runs"},
                                    {"version", "--version"}})
    expect_error(miniqat({word}), 2, {concat("unknown command \"", word, "\"; did you mean \"", meant, "\"?")});
}

TEST(Suggestions, NothingNearIsNothing) {
  EXPECT_EQ(cli::suggestion_for("--xyzzy", {"--out", "--run"}), "");
  EXPECT_EQ(cli::suggestion_for("", {"--out"}), "");
  EXPECT_EQ(cli::suggestion_for("-", {"--learning-rate"}), "");
  EXPECT_EQ(cli::suggestion_for("--outt", {"--out"}), "; did you mean \"--out\"?");
}

}  // namespace
}  // namespace miniqat::testing::help_test
