// Two networks' answers side by side.

#include "training/report/answers_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/text/json.h"
#include "training/report/page.h"

namespace miniqat::training::answers_report_test {
namespace {

/// `labels.size()` pictures of a shape.
datasets::Dataset pictures(std::vector<std::int32_t> labels, const Shape& shape, int classes) {
  const auto count = static_cast<std::int64_t>(labels.size());
  datasets::Dataset dataset;
  dataset.name = "pictures";
  dataset.images = Tensor(Shape{count, shape[0], shape[1], shape[2]}, DType::kUInt8);
  for (std::int64_t i = 0; i < dataset.images.elements(); ++i)
    dataset.images.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i / shape.elements());
  dataset.labels = Tensor(Shape{count}, DType::kInt32);
  std::ranges::copy(labels, dataset.labels.data<std::int32_t>());
  dataset.classes = classes;
  return dataset;
}

NetworkAnswers answers_of(const datasets::Dataset& dataset, const std::vector<std::vector<float>>& logits) {
  NetworkAnswers answers(dataset);
  for (std::size_t i = 0; i < logits.size(); ++i) answers.add(static_cast<std::int64_t>(i), logits[i]);
  return answers;
}

TEST(Comparison, FindsWhatOnlyTheFirstGetsRight) {
  const datasets::Dataset dataset = pictures({0, 0, 1, 1, 1}, {4, 4, 1}, 2);
  const NetworkAnswers first = answers_of(dataset, {{1, 0}, {1, 0}, {0, 1}, {1, 0}, {0, 1}});
  const NetworkAnswers second = answers_of(dataset, {{0, 1}, {1, 0}, {3, 0}, {0, 1}, {std::nanf(""), 0}});
  const Comparison both = compare(first, second, dataset, 10);
  EXPECT_EQ(both.both_right, 1);
  EXPECT_EQ(both.only_first_right, 3);
  EXPECT_EQ(both.only_second_right, 1);
  EXPECT_EQ(both.both_wrong, 0);
  EXPECT_EQ(both.same_class, 1);
  // The most certain mistake first: 2 is taken for class 0 with 1 / (1 + e^-3); an answer that is none comes last.
  ASSERT_EQ(both.lost.size(), 3u);
  EXPECT_EQ(both.lost[0].index, 2);
  EXPECT_EQ(both.lost[0].in_integers.predicted, 0);
  EXPECT_NEAR(both.lost[0].in_integers.score, 1 / (1 + std::exp(-3.0)), 1e-12);
  EXPECT_EQ(both.lost[1].index, 0);
  EXPECT_EQ(both.lost[2].in_integers.predicted, -1);
  // Sixteen bytes 2, in base64.
  EXPECT_EQ(both.lost[0].drawing["pixels"], "AgICAgICAgICAgICAgICAg==");
  EXPECT_EQ(compare(first, second, dataset, 1).lost.size(), 1u);
  EXPECT_EQ(compare(first, second, dataset, 1).only_first_right, 3);
}

TEST(Comparison, MakesLargePicturesSmaller) {
  const datasets::Dataset dataset = pictures({0}, {100, 300, 3}, 2);
  const Comparison large = compare(answers_of(dataset, {{1, 0}}), answers_of(dataset, {{0, 1}}), dataset, 1);
  EXPECT_EQ(large.lost[0].drawing["shape"], (std::vector{21, 64, 3}));
  EXPECT_EQ(large.lost[0].drawing["pixels"].get<std::string>().size(), 64u * 21 * 3 / 3 * 4);
  const datasets::Dataset strange = pictures({0}, {4, 4, 2}, 2);
  const Comparison unseen = compare(answers_of(strange, {{1, 0}}), answers_of(strange, {{0, 1}}), strange, 1);
  EXPECT_EQ(unseen.lost[0].drawing["pixels"], "") << "no picture for people";
}

/// A matrix of many classes would be mostly zeros.
TEST(ReportJson, HasTheMostFrequentConfusionsOfManyClasses) {
  const datasets::Dataset dataset = pictures({3, 3, 3, 7, 7, 9}, {4, 4, 1}, 40);
  std::vector<float> four(40), nine(40);
  four[4] = nine[9] = 1;
  RunReport run;
  run.answers.push_back({"integers", answers_of(dataset, {four, four, nine, four, four, nine})});
  Report report;
  report.runs.push_back(std::move(run));
  const nlohmann::json answers = report_to_json(report)["runs"][0]["answers"][0];
  EXPECT_TRUE(answers["confusion"].is_null());
  EXPECT_EQ(answers["confusions"], nlohmann::json::parse("[[3, 4, 2], [7, 4, 2], [3, 9, 1]]"));
}

}  // namespace
}  // namespace miniqat::training::answers_report_test
