#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/errors.h"
#include "tests/training/answered.h"
#include "training/evaluate/part_results.h"

namespace miniqat::training::one_answer_test {
namespace {

datasets::Dataset pets() {
  return {.name = "pets",
          .images = Tensor(Shape{1, 1, 1, 1}, DType::kUInt8),
          .labels = Tensor(Shape{1}, DType::kInt32),
          .classes = 3,
          .class_names = {"cat", "dog", "owl"}};
}

/// `answers[k]` times class k is the answer; the labels are given as counts, too.
Evaluation evaluated(const std::vector<int>& answers, const std::vector<int>& labels, float margin = 1) {
  std::vector<std::vector<float>> logits;
  std::vector<std::int32_t> wanted;
  for (int k = 0; k < 3; ++k) {
    std::vector<float> row(3);
    row[k] = margin;
    logits.insert(logits.end(), answers[k], row);
    wanted.insert(wanted.end(), labels[k], k);
  }
  std::vector<testing::Answered> all;
  for (std::size_t i = 0; i < logits.size(); ++i) all.emplace_back(logits[i], wanted[i]);
  return testing::evaluated(all);
}

TEST(OneAnswer, IsAClassWithAlmostAllAnswersAndFewerLabels) {
  const auto found = one_answer(evaluated({5, 95, 0}, {18, 68, 14}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 1);
  EXPECT_DOUBLE_EQ(found->of_answers, 0.95);
  EXPECT_DOUBLE_EQ(found->of_labels, 0.68);
  EXPECT_TRUE(one_answer(evaluated({90, 10, 0}, {74, 13, 13})));
  EXPECT_FALSE(one_answer(evaluated({89, 11, 0}, {34, 33, 33}))) << "fewer than nine in ten";
  EXPECT_FALSE(one_answer(evaluated({100, 0, 0}, {75, 13, 12}))) << "most labels are that";
  EXPECT_FALSE(one_answer(evaluated({49, 0, 0}, {0, 49, 0}))) << "too few to tell";
  EXPECT_FALSE(one_answer(Evaluation()));
}

TEST(OneAnswer, TheWarningHasBothSharesAndTheRemedy) {
  const Evaluation bad = evaluated({0, 100, 0}, {20, 68, 12});
  const std::string own = warning_of_one_answer(bad, pets(), "net.onnx", "/data/pets");
  EXPECT_TRUE(testing::mentions(own, {"warning: net.onnx answers dog for 100.00%", "68.00%", "--mean", "--std"}))
      << own;
  const std::string named = warning_of_one_answer(bad, pets(), "net.onnx", "mnist");
  EXPECT_TRUE(testing::mentions(named, {"other pixel values"})) << named;
  EXPECT_EQ(named.find("--mean"), std::string::npos) << "refused beside a data set with a name";
  datasets::Dataset numbers = pets();
  numbers.images = Tensor(Shape{1, 4});
  const std::string of_numbers = warning_of_one_answer(bad, numbers, "the network", "/data/pets.csv");
  EXPECT_TRUE(testing::mentions(of_numbers, {"100.00% of the examples", "or was trained on other numbers"}))
      << of_numbers;
  EXPECT_EQ(warning_of_one_answer(evaluated({40, 30, 30}, {40, 30, 30}), pets(), "net.onnx", "mnist"), "");
}

TEST(OneAnswer, BeforeTrainingALossFarAboveGuessingIsSaidToo) {
  // Wrong throughout, by 4 or by 1.5: losses about 4 and 1.9, guessing has 1.1.
  const Evaluation bad = evaluated({40, 30, 30}, {0, 60, 40}, 9), fair = evaluated({40, 30, 30}, {0, 60, 40}, 1.5);
  const std::string text = warning_before_training(bad, pets(), "net.onnx", "/data/pets");
  EXPECT_TRUE(
      testing::mentions(text, {"net.onnx has a loss of ", "guessing has 1.10", "if it was trained before", "--mean"}))
      << text;
  EXPECT_EQ(warning_before_training(fair, pets(), "net.onnx", "/data/pets"), "");
  const std::string one =
      warning_before_training(evaluated({0, 100, 0}, {20, 68, 12}), pets(), "net.onnx", "/data/pets");
  EXPECT_TRUE(testing::mentions(one, {"answers dog", "if it was trained before"})) << one;
}

}  // namespace
}  // namespace miniqat::training::one_answer_test
