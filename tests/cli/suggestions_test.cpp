// "Did you mean": flags of other tools, and names of models and data sets without their flags.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/advice.h"
#include "core/text/error.h"
#include "tests/cli/program.h"
#include "tests/temp_dir.h"

namespace miniqat::cli::suggestions_test {
namespace {

using testing::Arguments;
using testing::expect_error;
using testing::miniqat;

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
    const testing::Outcome outcome = miniqat({command, word, "1"});
    expect_error(outcome, 2, {concat("unknown argument \"", word, "\"; did you mean \"", meant, "\"?")});
  }
  // Only flags that the command has.
  EXPECT_EQ(miniqat("eval --lr 1").err.find("learning-rate"), std::string::npos);
  EXPECT_EQ(miniqat("inspect --batch 1").err.find("did you mean"), std::string::npos);
}

TEST(Suggestions, ANameWithoutItsFlagIsKnown) {
  const testing::TempDir place;
  const auto asks = [&](const Arguments& line, const std::string& meant) {
    expect_error(miniqat(line, place.path()), 2, {concat("did you mean \"", meant, "\"?")});
  };
  asks("train lenet5", "--model lenet5");
  asks("train LeNet-5", "--model lenet5");
  asks("train --epochs 1 resnet", "--model resnet20");
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
  EXPECT_EQ(suggestion_for("--xyzzy", {"--out", "--run"}), "");
  EXPECT_EQ(suggestion_for("", {"--out"}), "");
  EXPECT_EQ(suggestion_for("-", {"--learning-rate"}), "");
  EXPECT_EQ(suggestion_for("--outt", {"--out"}), "; did you mean \"--out\"?");
}

}  // namespace
}  // namespace miniqat::cli::suggestions_test
