#include "training/evaluate/answers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/text/json.h"

namespace miniqat::training::answers_test {
namespace {

using Json = nlohmann::ordered_json;

datasets::Dataset pictures(const std::vector<std::int32_t>& labels, int classes) {
  const auto n = static_cast<std::int64_t>(labels.size());
  return {.name = "some",
          .images = Tensor(Shape{n, 1, 1, 1}, DType::kUInt8),
          .labels = Tensor::from<std::int32_t>({n}, labels),
          .classes = classes};
}

TEST(ClassScores, AreTheSoftmax) {
  const std::vector<float> logits = {std::log(1.0f), std::log(3.0f), std::log(4.0f)};
  const std::vector<double> scores = class_scores(logits);
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_NEAR(scores[0], 0.125, 1e-7);
  EXPECT_NEAR(scores[1], 0.375, 1e-7);
  EXPECT_NEAR(scores[2], 0.5, 1e-7);
  // e^1000 overflows, e^-2000 vanishes.
  const std::vector<double> far = class_scores(std::vector<float>{1000, 1000, -1000});
  EXPECT_EQ(far[0], 0.5);
  EXPECT_EQ(far[1], 0.5);
  EXPECT_NEAR(far[2], 0, 1e-300);
  EXPECT_NEAR(cross_entropy(std::vector<float>{1000, 1000, -1000}, 0), std::log(2.0), 1e-12);
  EXPECT_NEAR(cross_entropy(std::vector<float>{1000, 1000, -1000}, 2), 2000 + std::log(2.0), 1e-9);
  for (std::size_t place = 0; place < 3; ++place) {
    std::vector<float> broken = {2, 1, 3};
    broken[place] = std::numeric_limits<float>::quiet_NaN();
    for (const double score : class_scores(broken)) EXPECT_TRUE(std::isnan(score)) << place;
    EXPECT_TRUE(std::isnan(cross_entropy(broken, 0))) << place;
  }
}

TEST(Answers, CountsTheFiveHighestOfManyClasses) {
  Answers many(pictures({0, 5, 4, 11}, 12)), few(pictures({0}, 10));
  std::vector<float> falling(12);
  std::iota(falling.rbegin(), falling.rend(), 0.0f);
  for (const std::int64_t i : {0, 1, 2}) many.add(i, falling);
  // Among equal logits the lower class comes first.
  many.add(3, std::vector<float>(12, 0.0f));
  EXPECT_EQ(many.top_five(), 0.5) << "classes 0 and 4, neither 5 nor 11";
  falling[0] = NAN;
  many.add(0, falling);
  EXPECT_EQ(many.top_five(), 0.5) << "a NaN is wrong";
  few.add(0, std::vector<float>(10, 1.0f));
  EXPECT_EQ(few.top_five(), std::nullopt);
}

TEST(Answers, CountsTheConfusionsAndListsTheMistakes) {
  Answers answers(pictures({0, 1, 1, 2, 1}, 4));
  answers.add(0, std::vector<float>{1, 0, 0, 0});
  answers.add(1, std::vector<float>{0, 1, 0, 0});
  answers.add(2, std::vector<float>{0, 0, std::log(3.0f), 0});
  answers.add(3, std::vector<float>{1, 1, 1, 1});
  answers.add(4, std::vector<float>{0, 5, NAN, 0});
  EXPECT_EQ(answers.classes(), 4);
  EXPECT_EQ(answers.count(1, 1), 1);
  EXPECT_EQ(answers.count(1, 2), 1);
  EXPECT_EQ(answers.count(2, 0), 1) << "ties go to the lower class";
  EXPECT_EQ(answers.count(1, -1), 1);
  EXPECT_EQ(answers.count(3, 3), 0);
  EXPECT_EQ(answers.undecided(), 1);
  EXPECT_EQ(answers.of_class(1).examples, 3);
  EXPECT_EQ(answers.of_class(1).correct, 1);
  EXPECT_EQ(answers.confusion_json(), Json::parse("[[1,0,0,0],[0,1,1,0],[1,0,0,0],[0,0,0,0]]"));
  const Json classes = answers.classes_json();
  EXPECT_EQ(classes[0], Json::parse(R"({"class": "0", "examples": 1, "correct": 1, "accuracy": 1.0})"));
  EXPECT_EQ(classes[1]["accuracy"], 1.0 / 3);
  EXPECT_EQ(classes[3]["accuracy"], nullptr) << "no pictures";
  ASSERT_EQ(answers.wrong().size(), 3u);
  EXPECT_NEAR(answers.wrong()[0].score, 0.5, 1e-7);
  const Json wrong = answers.wrong_json();
  EXPECT_EQ(wrong[1], Json::parse(R"({"index": 3, "label": 2, "predicted": 0, "score": 0.25})"));
  EXPECT_EQ(wrong[2], Json::parse(R"({"index": 4, "label": 1, "predicted": null, "score": null})"));
}

TEST(Answers, NamesTheFilesOfMistakes) {
  datasets::Dataset files = pictures({0, 1}, 2);
  files.files = std::make_shared<std::vector<std::string>>(std::vector<std::string>{"a.png", "b.png"});
  Answers answers(files);
  answers.add(0, std::vector<float>{1, 0});
  answers.add(1, std::vector<float>{1, 1});
  EXPECT_EQ(answers.wrong_json(),
            Json::parse(R"([{"index": 1, "label": 1, "predicted": 0, "score": 0.5, "file": "b.png"}])"));
}

}  // namespace
}  // namespace miniqat::training::answers_test
