// `miniqat train --augment`: who gets crops and flips, and that such runs can be repeated and resumed.

#include <gtest/gtest.h>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_augment_test {
namespace {

using Json = nlohmann::json;

class TrainAugmentTest : public TinyTaskTest {
 protected:
  Json json_of(const std::string& file) const { return Json::parse(bytes_of(path(file))); }
};

TEST_F(TrainAugmentTest, DigitsStayAsTheyAreUnlessAsked) {
  const Outcome plain = expect_success(train("plain", {}));
  expect_success(train("auto", "--augment auto"));
  expect_success(train("none", "--augment none"));
  const Outcome augmented = expect_success(train("augmented", "--augment crop-flip"));
  for (const std::string run : {"plain", "auto", "none"}) EXPECT_EQ(json_of(run + "/config.json")["augment"], "none");
  EXPECT_EQ(json_of("augmented/config.json")["augment"], "crop-flip");
  EXPECT_EQ(checkpoint_bytes("auto"), checkpoint_bytes("plain"));
  EXPECT_EQ(checkpoint_bytes("none"), checkpoint_bytes("plain"));
  EXPECT_NE(checkpoint_bytes("augmented"), checkpoint_bytes("plain"));
  expect_text(augmented.out, {"32 training (crop-flip) and 20 test pictures"});
  EXPECT_EQ(plain.out.find("crop-flip"), std::string::npos) << plain.out;
}

TEST_F(TrainAugmentTest, AnAugmentedRunResumesToTheSameBytes) {
  expect_success(train("whole", "--augment crop-flip"));
  for (const std::string stop : {"3", "8", "9"}) {
    expect_success(train("stopped" + stop, {"--augment", "crop-flip", "--stop-at", stop}));
    expect_success(program({"train", "--resume", "--out", "stopped" + stop}));
    EXPECT_EQ(checkpoint_bytes("stopped" + stop), checkpoint_bytes("whole")) << stop;
  }
  expect_success(train("again", "--stop-at 3"));
  expect_error(program("train --resume --augment crop-flip --out again"), 2, {"--augment", "none"});
}

// Weights that do not move: the loss in training sees the augmented pictures, the one on the test set does not.
TEST_F(TrainAugmentTest, EvaluationIsNotAugmented) {
  const Arguments still = "--float --learning-rate 0 --weight-decay 0";
  expect_success(train("plain", still));
  Arguments augmented = still;
  augmented.insert(augmented.end(), {"--augment", "crop-flip"});
  expect_success(train("augmented", augmented));
  const Json one = json_of("plain/summary.json"), two = json_of("augmented/summary.json");
  EXPECT_EQ(one["test_loss"], two["test_loss"]);
  EXPECT_NE(one["train_loss"], two["train_loss"]);
  const Arguments evaluate = "eval --threads 1 --json --split train --run";
  Arguments left = evaluate, right = evaluate;
  left.push_back("plain");
  right.push_back("augmented");
  EXPECT_EQ(program(left).out, program(right).out);
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
  EXPECT_EQ(json_of("auto/config.json")["augment"], "crop-flip");
  EXPECT_EQ(json_of("none/config.json")["augment"], "none");
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

}  // namespace
}  // namespace miniqat::testing::train_augment_test
