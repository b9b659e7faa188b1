// A flag that would do nothing is an error that names both it and what makes it so.

#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::ignored_flags_test {
namespace {

class IgnoredFlagsTest : public TinyTaskTest {
 protected:
  void refuses(const Arguments& line, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(::testing::PrintToString(line));
    expect_error(program(line), 2, parts);
  }
};

TEST_F(IgnoredFlagsTest, OfTrain) {
  const std::vector<Arguments> quantization = {{"--weight-bits", "4"},
                                               {"--activation-bits", "4"},
                                               {"--bits-config", "b.json"},
                                               {"--quant-delay", "3"},
                                               {"--ema-decay", "0.9"},
                                               {"--per-channel"},
                                               {"--symmetric"},
                                               {"--symmetric-weights"},
                                               {"--ranges", "learned"},
                                               {"--asymmetric-weights"},
                                               {"--freeze-bn-delay", "3"},
                                               {"--bn-fold", "single"},
                                               {"--quantize-input"},
                                               {"--float-pools"},
                                               {"--scope", "conv1"},
                                               {"--strict"}};
  for (Arguments flag : quantization) {
    const std::string name = flag.front();
    flag.insert(flag.begin(), {"train", "--float"});
    refuses(flag, {name, "--float"});
  }
  refuses({"train", "--optimizer", "adam", "--momentum", "0.5"}, {"--momentum", "--optimizer adam"});
  refuses({"train", "--optimizer", "adam", "--nesterov"}, {"--nesterov", "--optimizer adam"});
  for (const std::string schedule : {"constant", "cosine"})
    for (const std::string flag : {"--schedule-every", "--schedule-factor"})
      refuses({"train", "--schedule", schedule, flag, "1"}, {flag, "--schedule " + schedule});
  refuses({"train", "--schedule-every", "5"}, {"--schedule-every", "--schedule cosine"});
  refuses({"train", "--epochs", "2", "--steps", "5"}, {"--epochs", "--steps 5"});
  refuses({"train", "--model", "tiny.json", "--width", "0.5"}, {"--width", "--model tiny.json"});
  refuses({"train", "--data-dir", "digits"}, {"--data-dir", "--dataset synthetic"});
  refuses({"train", "--symmetric", "--symmetric-weights"}, {"--symmetric-weights", "--symmetric, which includes"});
  refuses({"train", "--asymmetric-weights"}, {"--asymmetric-weights", "--ranges auto --weight-bits 8"});
  refuses({"train", "--ranges", "learned", "--asymmetric-weights", "--symmetric"},
          {"--asymmetric-weights", "--symmetric"});
  refuses({"train", "--ranges", "auto", "--asymmetric-weights", "--symmetric-weights"},
          {"--asymmetric-weights", "--symmetric-weights"});
  refuses({"train", "--range-learning-rate", "0.01"}, {"--range-learning-rate", "--ranges auto and more than 4 bits"});
  refuses({"train", "--float", "--range-learning-rate", "0.01"}, {"--range-learning-rate", "--float"});
  refuses({"train", "--weight-decay", "0", "--decay-all"}, {"--decay-all", "--weight-decay 0"});
  refuses({"train", "--out", ""}, {"--out", "empty"});
  refuses({"train", "--resume", "--out", ""}, {"--out", "empty"});
  place_.write("c.json", R"({"optimizer": "adam", "momentum": 0.9})");
  refuses({"train", "--config", "c.json", "--momentum", "0.5"}, {"--momentum", "--optimizer adam"});
}

TEST_F(IgnoredFlagsTest, BesideRanges) {
  refuses({"train", "--float", "--range-learning-rate", "0.1"}, {"--range-learning-rate", "--float"});
  const Arguments rate = {"train", "--range-learning-rate", "0.1"};
  const auto with = [](Arguments line, const Arguments& more) {
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  refuses(rate, {"--range-learning-rate has no effect with --ranges auto and more than 4 bits"});
  refuses(with(rate, {"--ranges", "observed"}), {"--range-learning-rate has no effect with --ranges observed"});
  refuses(with(rate, {"--ranges", "auto"}), {"--range-learning-rate", "--ranges auto and more than 4 bits"});
  refuses({"train", "--ranges", "learned", "--ema-decay", "0.9"}, {"--ema-decay has no effect with --ranges learned"});
  refuses({"train", "--ranges", "auto", "--activation-bits", "3", "--ema-decay", "0.9"},
          {"--ema-decay has no effect with --ranges auto --activation-bits 3"});
  refuses({"train", "--ranges", "all-values", "--ema-decay", "0.9"},
          {"--ema-decay has no effect with --ranges all-values"});
  refuses(with(rate, {"--ranges", "all-values"}), {"--range-learning-rate has no effect with --ranges all-values"});
  const Arguments commands[] = {{"train"},
                                {"rewrite", "--graph", "tiny.json", "--mode", "train"},
                                {"rewrite", "--graph", "tiny.json", "--mode", "eval"},
                                {"calibrate", "--run", "run", "--out", "ptq"}};
  for (const Arguments& command : commands) {
    const std::string flag = "--asymmetric-weights has no effect with ";
    refuses(with(command, {"--ranges", "observed", "--asymmetric-weights"}),
            {flag + "--ranges observed, whose weights are asymmetric"});
    refuses(with(command, {"--ranges", "all-values", "--asymmetric-weights"}),
            {flag + "--ranges all-values, whose weights are asymmetric"});
    refuses(with(command, {"--ranges", "auto", "--asymmetric-weights"}), {flag + "--ranges auto --weight-bits 8"});
    refuses(with(command, {"--ranges", "learned", "--symmetric", "--asymmetric-weights"}), {flag + "--symmetric"});
    refuses(with(command, {"--ranges", "learned", "--symmetric-weights", "--asymmetric-weights"}),
            {flag + "--symmetric-weights"});
    refuses(with(command, {"--ranges", "lerned"}),
            {"--ranges must be observed, learned, auto or all-values, got \"lerned\"", "did you mean \"learned\"?"});
  }
  place_.write("c.json", R"({"ranges": "some"})");
  refuses({"train", "--config", "c.json"}, {"c.json", "\"ranges\"", "\"some\""});
  for (const std::string bad : {"-1", "nan", "inf", "1e39"})
    refuses({"train", "--ranges", "learned", "--range-learning-rate", bad},
            {"--range-learning-rate must be a finite number >= 0"});
  refuses({"train", "--ranges", "learned", "--range-learning-rate", "10"},
          {"--range-learning-rate must be at most 1, got 10", "changes in a step (0.003 is 0.3%)"});
  refuses({"train", "--ranges", "learned", "--range-learning-rate", "fast"}, {"--range-learning-rate", "\"fast\""});
}

// Layers may have ranges of their own, and so may a graph file.
TEST_F(IgnoredFlagsTest, NotWhereSomeRangesAreLearned) {
  place_.write("b.json", R"({"fc": {"ranges": "learned"}})");
  const Arguments layer = {"--bits-config", "b.json", "--asymmetric-weights", "--range-learning-rate", "0.01"};
  expect_success(train("layer", layer));
  expect_success(train("few-bits", {"--ranges", "auto", "--weight-bits", "4", "--asymmetric-weights",
                                    "--range-learning-rate", "0.01", "--ema-decay", "0.9"}));
  EXPECT_EQ(json_of(path("few-bits/summary.json"))["quantization"], "W4A8 learned");
  expect_success(
      program({"rewrite", "--graph", "tiny.json", "--mode", "train", "--ranges", "learned", "--out", "r.json"}));
  expect_success(train("rewritten", {"--model", "r.json", "--range-learning-rate", "0.01"}));
  EXPECT_EQ(json_of(path("rewritten/summary.json"))["quantization"], "W8A8 learned symmetric weights");
  expect_error(train("other", {"--model", "r.json", "--ranges", "observed"}), 2,
               {"--ranges observed: r.json was rewritten before", "a learned range, not a last value"});
  expect_error(train("other", {"--model", "r.json", "--ranges", "learned", "--asymmetric-weights"}), 2,
               {"--asymmetric-weights: r.json was rewritten before", "a symmetric range, not an asymmetric one"});
  expect_success(train("same", {"--model", "r.json", "--ranges", "learned"}));
  EXPECT_EQ(checkpoint_bytes("same").size(), checkpoint_bytes("rewritten").size());
}

// Where the other is not on the command line, the flag is what the user means.
TEST_F(IgnoredFlagsTest, EpochsWinOverTheStepsOfAConfigFile) {
  place_.write("c.json", R"({"steps": 5})");
  expect_success(program({"train", "--config", "c.json", "--epochs", "1", "--model", "tiny.json", "--dataset", "mnist",
                          "--data-dir", "digits", "--threads", "1", "--out", "run"}));
  EXPECT_EQ(step_of(path("run")), 8);
}

TEST_F(IgnoredFlagsTest, OfOtherCommands) {
  refuses({"rewrite", "--graph", "tiny.json", "--mode", "eval", "--quant-delay", "3"},
          {"--quant-delay", "--mode eval"});
  refuses({"rewrite", "--graph", "tiny.json", "--mode", "eval", "--freeze-bn-delay", "3"},
          {"--freeze-bn-delay", "--mode eval"});
  refuses({"rewrite", "--graph", "tiny.json", "--mode", "eval", "--bn-fold", "single"}, {"--bn-fold", "--mode eval"});
  refuses({"rewrite", "--graph", "tiny.json", "--mode", "eval", "--ema-decay", "0.5"}, {"--ema-decay", "--mode eval"});
  for (const std::string mode : {"train", "eval"})
    refuses({"rewrite", "--graph", "tiny.json", "--mode", mode, "--symmetric", "--symmetric-weights"},
            {"--symmetric-weights", "--symmetric, which includes"});
  refuses({"calibrate", "--run", "run", "--out", "ptq", "--symmetric", "--symmetric-weights"},
          {"--symmetric-weights", "--symmetric, which includes"});
  refuses({"run", "--graph", "tiny.json", "--random-feeds", "--fetch", "pool1", "--step", "5", "--out", "o"},
          {"--step 5", "--graph tiny.json, in which nothing counts steps"});
  refuses({"run", "--graph", "tiny.json", "--random-feeds", "--fetch", "pool1", "--backend", "reference", "--threads",
           "2", "--out", "o"},
          {"--threads 2", "--backend reference"});
  refuses({"run", "--graph", "tiny.json", "--by-name", "--random-feeds", "--train", "--out", "o"},
          {"--by-name", "--checkpoint"});
  refuses({"bench", "--kernels-only", "--models", "lenet"}, {"--kernels-only", "--models"});
  refuses({"bench", "--kernels-only", "--batch-size", "8"}, {"--kernels-only", "--batch-size"});
  refuses({"bench", "--steps-only", "--elements", "8"}, {"--steps-only", "--elements"});
  refuses({"models", "--width", "0.5"}, {"--width", "--model"});
  refuses({"models", "--classes", "5"}, {"--classes", "--model"});
  refuses({"models", "--batch-size", "5"}, {"--batch-size", "--model"});
  for (const std::string flag : {"--runtimes", "--runtime-timeout", "--min-runtime-agreement"})
    refuses({"verify", "--run", "run", "--no-runtimes", flag, "5"}, {flag, "--no-runtimes"});
  refuses({"verify", "--run", "run", "--no-runtimes", "--int4"}, {"--int4", "--no-runtimes"});
  refuses({"calibrate", "--run", "run", "--out", "ptq", "--ema-decay", "0.5"}, {"--ema-decay", "--method"});
}

// What another network of the same command line would have needs no error, but a word.
TEST_F(IgnoredFlagsTest, ForWantOfSuchANodeAreNoted) {
  const std::vector<Arguments> flags = {{"--bn-fold", "single"}, {"--float-pools"}, {"--freeze-bn-delay", "3"}};
  for (const Arguments& flag : flags) {
    const std::string note = "note: " + flag.front();
    const auto has_no_effect = [&](const std::string& text) {
      const auto found = text.find(note);
      return found != std::string::npos && text.find("has no effect", found) < text.find('\n', found);
    };
    Arguments line = {"rewrite", "--graph", "tiny.json", "--out", "r.json"};
    line.insert(line.end(), flag.begin(), flag.end());
    EXPECT_TRUE(has_no_effect(program(line).err)) << note;
    const std::string trained = train("run", Arguments{{"--overwrite"}}).out;
    EXPECT_EQ(trained.find(note), std::string::npos) << trained;
    line = {"--overwrite"};
    line.insert(line.end(), flag.begin(), flag.end());
    EXPECT_TRUE(has_no_effect(train("run", line).out)) << note;
  }
  expect_success(program({"models", "--model", "resnet20", "--batch-size", "2", "--out", "norms.json"}));
  const Outcome used =
      program({"rewrite", "--graph", "norms.json", "--bn-fold", "single", "--float-pools", "--out", "r.json"});
  EXPECT_EQ(used.status, 0);
  EXPECT_EQ(used.err.find("no effect"), std::string::npos) << used.err;
}

// An outer step count is for what waits for it.
TEST_F(IgnoredFlagsTest, NotWhereStepsCount) {
  const auto runs = [&](const std::string& graph, const Arguments& more) {
    Arguments line = {"run", "--graph", graph, "--random-feeds", "--fetch", "conv1/Relu", "--step", "5", "--out", "o"};
    line.insert(line.end(), more.begin(), more.end());
    return program(line);
  };
  EXPECT_EQ(program({"rewrite", "--graph", "tiny.json", "--quant-delay", "3", "--out", "q.json"}).status, 0);
  expect_success(runs("q.json", {"--backend", "reference", "--threads", "1"}));
  EXPECT_EQ(program({"rewrite", "--graph", "tiny.json", "--mode", "eval", "--out", "e.json"}).status, 0);
  expect_error(runs("e.json", {}), 2, {"--step 5", "--graph e.json, in which nothing counts steps"});
  std::string text = tiny_classifier();
  text.replace(text.find(R"("inputs": ["conv1/BiasAdd"])"), 27, R"("inputs": ["norm"])");
  std::string vectors;
  for (const std::string name : {"gamma", "beta", "mean", "variance"})
    vectors += R"({"name": ")" + name + R"(", "op": "Variable", "attrs": {"shape": [4]}},)";
  text.insert(text.find(R"({"name": "conv1/Relu")"),
              vectors + R"({"name": "norm", "op": "BatchNorm", "attrs": {"freeze_delay": 3},
                            "inputs": ["conv1/BiasAdd", "gamma", "beta", "mean", "variance"]},)");
  place_.write("norm.json", text);
  expect_success(runs("norm.json", {"--train"}));
  expect_error(runs("norm.json", {}), 2, {"--step 5", "only batch norms count steps, with --train"});
}

TEST_F(IgnoredFlagsTest, OfCommandsOnARun) {
  expect_success(program({"train", "--model", "lenet5", "--width", "0.2", "--steps", "1", "--batch-size", "4",
                          "--threads", "1", "--float", "--out", "run"}));
  refuses({"eval", "--run", "run", "--data-dir", "digits"}, {"--data-dir", "--dataset synthetic"});
  refuses({"eval", "--run", "run", "--dataset", "synthetic", "--data-dir", "digits"}, {"--data-dir", "synthetic"});
  refuses({"verify", "--run", "run", "--data-dir", "digits"}, {"--data-dir", "--dataset synthetic"});
  refuses({"calibrate", "--run", "run", "--out", "ptq", "--data-dir", "digits"}, {"--data-dir", "--dataset synthetic"});
  refuses({"eval", "--run", "run", "--checkpoint", ""}, {"--checkpoint", "empty"});
  refuses({"calibrate", "--run", "run", "--out", ""}, {"--out", "empty"});
}

}  // namespace
}  // namespace miniqat::testing::ignored_flags_test
