// `train --class-weights`: uneven classes count alike.

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::class_weights_test {
namespace {

using Json = nlohmann::json;

class TrainClassWeightsTest : public TinyTaskTest {
 protected:
  /// 90 pictures of 2x2 with two classes that overlap: 80 of "0", 10 of "1"; as many of each for tests.
  TrainClassWeightsTest() {
    std::string train, test;
    for (int i = 0; i < 90; ++i) {
      const bool rare = i % 9 == 0;
      const int value = (rare ? 70 : 0) + i * 37 % 160;
      train += concat(rare ? 1 : 0, ",", value, ",", value, ",", value, ",", value, "\n");
      test += concat(i % 9 == 0 ? 1 : 0, ",", value, ",", value, ",", value, ",", value, "\n");
    }
    place_.write("uneven/train.csv", train);
    place_.write("uneven/test.csv", test);
    place_.write("two.json", R"({"format": "miniqat.graph", "version": 2, "nodes": [
      {"name": "images", "op": "Placeholder", "attrs": {"shape": [10, 2, 2, 1]}},
      {"name": "flatten", "op": "Reshape", "inputs": ["images"], "attrs": {"shape": [-1, 4]}},
      {"name": "fc/weights", "op": "Variable", "attrs": {"shape": [4, 2], "initializer": {"type": "glorot_uniform"}}},
      {"name": "fc/MatMul", "op": "MatMul", "inputs": ["flatten", "fc/weights"]},
      {"name": "fc/biases", "op": "Variable", "attrs": {"shape": [2], "initializer": {"type": "constant", "value": 0}}},
      {"name": "fc/BiasAdd", "op": "BiasAdd", "inputs": ["fc/MatMul", "fc/biases"]}],
      "outputs": ["fc/BiasAdd"]})");
  }
  Outcome trained(const std::string& out, const Arguments& more) const {
    return program(
        "train --float --model two.json --dataset ./uneven --epochs 40 --threads 1 --learning-rate 0.3 --batch-size "
        "10" +
        Arguments{"--out", out} + more);
  }
  Json evaluated(const std::string& run) const {
    const Outcome outcome = program({"eval", run, "--json", "--threads", "1"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

TEST_F(TrainClassWeightsTest, TheRareClassIsFoundWithThemAndTheBalancedAccuracyShowsIt) {
  const Outcome plain = trained("plain", {}), balanced = trained("balanced", {"--class-weights", "balanced"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(balanced.status, 0) << balanced.err;
  expect_text(plain.out, {"), balanced "});
  EXPECT_GT(evaluated("balanced")["balanced_accuracy"].get<double>(),
            evaluated("plain")["balanced_accuracy"].get<double>() + 0.1);
  EXPECT_EQ(json_of(path("balanced/summary.json"))["test_balanced_accuracy"],
            evaluated("balanced")["balanced_accuracy"]);
  EXPECT_EQ(json_of(path("balanced/class_weights.json")), (Json{{"0", 90.0 / 160}, {"1", 4.5}}));
  expect_text(program("eval plain").out, {"), balanced 5"});
}

TEST_F(TrainClassWeightsTest, AFileIsCopiedIntoTheRunWhichGoesOnWithoutIt) {
  place_.write("weights.json", R"({"0": 1, "1": 8})");
  const Outcome whole = trained("whole", {"--class-weights", "weights.json"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(trained("run", {"--class-weights", "weights.json", "--stop-at", "100"}).status, 0);
  place_.write("others.json", R"({"0": 1, "1": 9})");
  expect_error(program("train --resume --out run --class-weights others.json"), 2, {"--class-weights differs"});
  const Outcome same = program("train --resume --out run --class-weights weights.json --stop-at 150");
  EXPECT_EQ(same.status, 0) << same.err;
  std::filesystem::remove(path("weights.json"));
  EXPECT_EQ(program("train --resume --out run").status, 0);
  EXPECT_EQ(files_of(path("run")).checkpoint, files_of(path("whole")).checkpoint);
  // What begins from the run finds its weights, too.
  const Outcome quantized = program("quantize run --epochs 1 --threads 1 --out q");
  EXPECT_EQ(quantized.status, 0) << quantized.err;
  expect_text(quantized.out, {"by balanced accuracy"});
  EXPECT_EQ(json_of(path("q/class_weights.json")), (Json{{"0", 1}, {"1", 8}}));
  EXPECT_TRUE(std::filesystem::exists(path("q/trained/class_weights.json")));
  expect_error(trained("no", {"--class-weights", "weights.json"}), 2, {"weights.json"});
}

}  // namespace
}  // namespace miniqat::testing::class_weights_test
