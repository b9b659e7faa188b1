// The data of `miniqat train`: the folder as a run keeps it; --augment, who gets crops and flips, and that such runs
// can be repeated and resumed; --class-weights, by which uneven classes count alike.

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_data_test {
namespace {

class DataDirTest : public TinyTaskTest {
 protected:
  /// The program with MINIQAT_DATA_DIR, in the tests' directory.
  Outcome with_variable(const std::string& value, const Arguments& line) const {
    return Program(Program::Line{(Arguments{"/usr/bin/env", "MINIQAT_DATA_DIR=" + value, program_path()} + line)},
                   place_.path())
        .wait();
  }
  Arguments training(const std::string& out) const {
    return {"train", "--model", "tiny.json", "--dataset", "mnist", "--steps", "12", "--threads", "1", "--out", out};
  }
};

/// It was "": in the next shell `eval RUN` failed, and exports had random test vectors.
TEST_F(DataDirTest, TheOneOfTheVariableIsKept) {
  expect_success(with_variable(path("digits").string(), training("run")));
  EXPECT_EQ(json_of(path("run/config.json"))["data_dir"], path("digits").string());
  expect_success(program("eval run"));
  // From a run to the next one, too.
  expect_success(with_variable(path("digits").string(), training("float") + "--float"));
  expect_success(program("calibrate float --out calibrated"));
  EXPECT_EQ(json_of(path("calibrated/config.json"))["data_dir"], path("digits").string());
}

TEST_F(DataDirTest, ARelativeOneMeansTheSameFromAnyFolder) {
  expect_success(program(training("run") + "--data-dir digits"));
  EXPECT_EQ(json_of(path("run/config.json"))["data_dir"], path("digits").string());
  expect_success(miniqat({"eval", path("run").string()}, "/"));
}

TEST_F(DataDirTest, OneThatIsGoneGivesWayToTheVariable) {
  expect_success(with_variable(path("digits").string(), training("run")));
  std::filesystem::rename(path("digits"), path("moved"));
  expect_error(program("eval run"), 1, {path("digits").string(), "--data-dir"});
  expect_success(with_variable(path("moved").string(), {"eval", "run"}));
}

using Json = nlohmann::json;

using TrainAugmentTest = TinyTaskTest;

TEST_F(TrainAugmentTest, DigitsStayAsTheyAreUnlessAsked) {
  const Outcome plain = expect_success(train("plain", {}));
  expect_success(train("auto", "--augment auto"));
  expect_success(train("none", "--augment none"));
  const Outcome augmented = expect_success(train("augmented", "--augment crop-flip"));
  for (const std::string run : {"plain", "auto", "none"})
    EXPECT_EQ(json_of(path(run) / "config.json")["augment"], "none");
  EXPECT_EQ(json_of(path("augmented/config.json"))["augment"], "crop-flip");
  EXPECT_EQ(checkpoint_bytes("auto"), checkpoint_bytes("plain"));
  EXPECT_EQ(checkpoint_bytes("none"), checkpoint_bytes("plain"));
  EXPECT_NE(checkpoint_bytes("augmented"), checkpoint_bytes("plain"));
  expect_text(augmented.out, {"32 training (crop-flip) and 20 test pictures"});
  EXPECT_EQ(plain.out.find("crop-flip"), std::string::npos) << plain.out;
}

TEST_F(TrainAugmentTest, AnAugmentedRunResumesToTheSameBytes) {
  expect_success(train("whole", "--augment crop-flip"));
  expect_success(train("stopped", "--augment crop-flip --stop-at 3"));
  expect_success(program("train --resume --out stopped"));
  EXPECT_EQ(checkpoint_bytes("stopped"), checkpoint_bytes("whole"));
  expect_success(train("again", "--stop-at 3"));
  expect_error(program("train --resume --augment crop-flip --out again"), 2, {"--augment", "none"});
}

// Weights that do not move: the loss in training sees the augmented pictures, the one on the test set does not.
TEST_F(TrainAugmentTest, EvaluationIsNotAugmented) {
  const Arguments still = "--float --learning-rate 0 --weight-decay 0";
  expect_success(train("plain", still));
  expect_success(train("augmented", still + "--augment crop-flip"));
  const Json one = json_of(path("plain/summary.json")), two = json_of(path("augmented/summary.json"));
  EXPECT_EQ(one["test_loss"], two["test_loss"]);
  EXPECT_NE(one["train_loss"], two["train_loss"]);
  const Arguments evaluate = "eval --threads 1 --json --split train --run";
  EXPECT_EQ(program(evaluate + "plain").out, program(evaluate + "augmented").out);
}

TEST_F(TrainAugmentTest, Cifar10IsAugmentedUnlessToldOtherwise) {
  std::string batch;
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 3073; ++i) batch += static_cast<char>(i == 0 ? n : i * 37 % 251);
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    place_.write(std::string("cifar/") + name + ".bin", batch);
  const auto train_cifar = [&](const std::string& out, const Arguments& more) {
    const Arguments line =
        "train --model lenet5 --dataset cifar10 --data-dir cifar --batch-size 2 --steps 2 --threads 1" +
        Arguments{"--out", out} + more;
    expect_success(program(line));
  };
  train_cifar("auto", {});
  train_cifar("crop-flip", {"--augment", "crop-flip"});
  train_cifar("none", {"--augment", "none"});
  EXPECT_EQ(json_of(path("auto/config.json"))["augment"], "crop-flip");
  EXPECT_EQ(json_of(path("none/config.json"))["augment"], "none");
  EXPECT_EQ(checkpoint_bytes("auto"), checkpoint_bytes("crop-flip"));
  EXPECT_NE(checkpoint_bytes("auto"), checkpoint_bytes("none"));
}

TEST_F(TrainAugmentTest, DigitsAreShiftedWithoutMirrors) {
  const Outcome shifted = expect_success(train("shifted", "--augment shift"));
  expect_text(shifted.out, {"32 training (shift) and 20 test pictures"});
  expect_success(train("mirrored", "--augment crop-flip"));
  expect_success(train("plain", {}));
  EXPECT_NE(checkpoint_bytes("shifted"), checkpoint_bytes("plain"));
  EXPECT_NE(checkpoint_bytes("shifted"), checkpoint_bytes("mirrored"));
}

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
  place_.write("list.json", "[1, 8]");
  for (const char* same : {"weights.json --stop-at 150", "list.json --stop-at 151"}) {
    const Outcome outcome = program(concat("train --resume --out run --class-weights ", same));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
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

// The file is one of those that the new run replaces.
TEST_F(TrainClassWeightsTest, ARunIsRepeatedInItsOwnPlace) {
  place_.write("weights.json", R"({"0": 1, "1": 8})");
  ASSERT_EQ(trained("run", {"--class-weights", "weights.json"}).status, 0);
  std::filesystem::remove(path("weights.json"));
  const std::string checkpoint = files_of(path("run")).checkpoint;
  const Outcome repeated = program("train --config run/config.json --out run --overwrite");
  EXPECT_EQ(repeated.status, 0) << repeated.err;
  EXPECT_EQ(files_of(path("run")).checkpoint, checkpoint);
  const Arguments quantize = "quantize run --epochs 1 --threads 1 --out q";
  ASSERT_EQ(program(quantize).status, 0);
  const Outcome again = program(quantize + "--overwrite --class-weights q/class_weights.json");
  EXPECT_EQ(again.status, 0) << again.err;
  for (const char* kept : {"run/class_weights.json", "q/class_weights.json"})
    EXPECT_EQ(json_of(path(kept)), (Json{{"0", 1}, {"1", 8}})) << kept;
}

using TrainSeriesTest = ProgramTest;

/// Versions that took a test series of a class without a training example have made runs.
TEST_F(TrainSeriesTest, ARunThatHasATestSeriesOfAnUnlearntClassGoesOn) {
  const std::string head = "@classLabel true 8 9 10\n@data\n";
  std::string series = head;
  for (int i = 0; i < 24; ++i) series += concat(i % 7, ",", i % 5, ",", i % 3, ":", 9 + i % 2, "\n");
  place_.write("X_TRAIN.ts", series);
  place_.write("X_TEST.ts", head + "1,2,1:9\n4,3,1:10\n");
  const Arguments line = "train --float --model mlp --dataset X_TRAIN.ts --batch-size 4 --steps 2 --threads 1 --out";
  EXPECT_EQ(program(line + "run").status, 0);
  // As many as before, as if that run had them from its beginning.
  place_.write("X_TEST.ts", head + "1,2,1:9\n4,3,1:8\n");
  EXPECT_EQ(program(line + "new").status, 1);
  for (const char* way_on : {"train --resume --steps 4 --out run", "quantize run --steps 1 --threads 1 --out bits"}) {
    const Outcome outcome = program(way_on);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
}

}  // namespace
}  // namespace miniqat::testing::train_data_test
