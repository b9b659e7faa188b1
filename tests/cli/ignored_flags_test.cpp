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

// Layers may have ranges of their own, and so may a graph file.
TEST_F(IgnoredFlagsTest, NotWhereSomeRangesAreLearned) {
  place_.write("b.json", R"({"fc": {"ranges": "learned"}})");
  const Arguments layer = "--bits-config b.json --asymmetric-weights --range-learning-rate 0.01";
  expect_success(train("layer", layer));
  expect_success(train(
      "few-bits", "--ranges auto --weight-bits 4 --asymmetric-weights --range-learning-rate 0.01 --ema-decay 0.9"));
  EXPECT_EQ(json_of(path("few-bits/summary.json"))["quantization"], "W4A8 learned");
  expect_success(program("rewrite --graph tiny.json --mode train --ranges learned --out r.json"));
  expect_success(train("rewritten", "--model r.json --range-learning-rate 0.01"));
  EXPECT_EQ(json_of(path("rewritten/summary.json"))["quantization"], "W8A8 learned symmetric weights");
  expect_error(train("other", "--model r.json --ranges observed"), 2,
               {"--ranges observed: r.json was rewritten before", "a learned range, not a last value"});
  expect_error(train("other", "--model r.json --ranges learned --asymmetric-weights"), 2,
               {"--asymmetric-weights: r.json was rewritten before", "a symmetric range, not an asymmetric one"});
  expect_success(train("same", "--model r.json --ranges learned"));
  EXPECT_EQ(checkpoint_bytes("same").size(), checkpoint_bytes("rewritten").size());
}

// Where the other is not on the command line, the flag is what the user means.
TEST_F(IgnoredFlagsTest, EpochsWinOverTheStepsOfAConfigFile) {
  place_.write("c.json", R"({"steps": 5})");
  expect_success(program(
      "train --config c.json --epochs 1 --model tiny.json --dataset mnist --data-dir digits --threads 1 --out run"));
  EXPECT_EQ(step_of(path("run")), 8);
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
    EXPECT_TRUE(has_no_effect(program("rewrite --graph tiny.json --out r.json" + flag).err)) << note;
    const std::string trained = train("run", "--overwrite").out;
    EXPECT_EQ(trained.find(note), std::string::npos) << trained;
    EXPECT_TRUE(has_no_effect(train("run", "--overwrite" + flag).out)) << note;
  }
  expect_success(program("models --model resnet20 --batch-size 2 --out norms.json"));
  const Outcome used = program("rewrite --graph norms.json --bn-fold single --float-pools --out r.json");
  EXPECT_EQ(used.status, 0);
  EXPECT_EQ(used.err.find("no effect"), std::string::npos) << used.err;
}

// An outer step count is for what waits for it.
TEST_F(IgnoredFlagsTest, NotWhereStepsCount) {
  const auto runs = [&](const std::string& graph, const Arguments& more) {
    return program(
        Arguments{"run", "--graph", graph, "--random-feeds", "--fetch", "conv1/Relu", "--step", "5", "--out", "o"} +
        more);
  };
  EXPECT_EQ(program("rewrite --graph tiny.json --quant-delay 3 --out q.json").status, 0);
  expect_success(runs("q.json", {"--backend", "reference", "--threads", "1"}));
  EXPECT_EQ(program("rewrite --graph tiny.json --mode eval --out e.json").status, 0);
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

}  // namespace
}  // namespace miniqat::testing::ignored_flags_test
