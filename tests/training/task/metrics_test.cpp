#include "training/task/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "core/tensors/random.h"
#include "tests/errors.h"
#include "tests/source_dir.h"

namespace miniqat::training::metrics_test {
namespace {

using testing::error_of;
using testing::mentions;
using Numbers = std::vector<double>;
using Labels = std::vector<std::int32_t>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A line of metrics_by_sklearn.txt: a key and numbers.
struct Line {
  std::string key;
  Numbers numbers;
};

struct Case {
  std::string name;
  std::vector<Line> lines;

  const Numbers& of(const std::string& key) const {
    static const Numbers none;
    for (const Line& line : lines)
      if (line.key == key) return line.numbers;
    return none;
  }
  Labels labels_of(const std::string& key) const {
    Labels labels;
    for (const double number : of(key)) labels.push_back(static_cast<std::int32_t>(number));
    return labels;
  }
};

std::vector<Case> cases() {
  std::ifstream file(source_dir() / "tests/training/task/metrics_by_sklearn.txt");
  std::vector<Case> found;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with("#")) continue;
    std::istringstream words(text);
    Line line;
    words >> line.key;
    if (line.key == "case") {
      found.push_back({.name = text.substr(5), .lines = {}});
      continue;
    }
    for (std::string word; words >> word;) line.numbers.push_back(std::stod(word));
    found.back().lines.push_back(line);
  }
  return found;
}

void expect_share(std::optional<double> found, double expected, const std::string& what) {
  if (std::isnan(expected))
    EXPECT_FALSE(found) << what;
  else
    EXPECT_NEAR(found.value_or(kNaN), expected, 1e-15) << what;
}

/// Returns how many figures it compared.
int compare_detection(const Case& test) {
  const Numbers& scores = test.of("scores");
  const Labels labels = test.labels_of("labels");
  const std::vector<RocPoint> curve = roc_curve(scores, labels);
  std::size_t corner = 0;
  int compared = 0;
  for (const Line& line : test.lines) {
    const Numbers& n = line.numbers;
    ++compared;
    if (line.key == "roc_auc") {
      EXPECT_NEAR(roc_auc(scores, labels), n[0], 1e-14);
    } else if (line.key == "partial_roc_auc") {
      EXPECT_NEAR(partial_roc_auc(scores, labels, n[0]), n[1], 1e-13) << n[0];
    } else if (line.key == "found") {
      const Detections detections = detections_at(n[0], scores, labels);
      expect_share(detections.precision(), n[1], "precision");
      expect_share(detections.recall(), n[2], "recall");
      expect_share(detections.f1(), n[3], "f1");
    } else if (line.key == "roc" && corner < curve.size()) {
      EXPECT_NEAR(curve[corner].false_positive_rate, n[0], 1e-15) << corner;
      EXPECT_NEAR(curve[corner].true_positive_rate, n[1], 1e-15) << corner;
      EXPECT_EQ(curve[corner].threshold, n[2]) << corner;
      ++corner;
    } else {
      --compared;
    }
  }
  EXPECT_EQ(corner, curve.size());
  return compared;
}

int compare_regression(const Case& test) {
  const Numbers &predictions = test.of("predictions"), &targets = test.of("targets");
  const double error = test.of("mean_squared_error").at(0);
  EXPECT_NEAR(mean_squared_error(predictions, targets), error, 1e-14 * error);
  EXPECT_NEAR(mean_absolute_error(predictions, targets), test.of("mean_absolute_error").at(0), 1e-12);
  EXPECT_NEAR(r_squared(predictions, targets).value_or(kNaN), test.of("r_squared").at(0), 1e-9);
  return 3;
}

int compare_classes(const Case& test) {
  int compared = 0;
  for (const Line& line : test.lines)
    if (line.key == "top_k_accuracy") {
      const auto k = static_cast<std::int64_t>(line.numbers[0]);
      EXPECT_NEAR(top_k_accuracy(test.of("logits"), 7, test.labels_of("classes"), k), line.numbers[1], 1e-15) << k;
      ++compared;
    }
  return compared;
}

TEST(Metrics, AreThoseOfScikitLearn) {
  int compared = 0;
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    if (!test.of("scores").empty()) compared += compare_detection(test);
    if (!test.of("targets").empty()) compared += compare_regression(test);
    if (!test.of("classes").empty()) compared += compare_classes(test);
  }
  EXPECT_GT(compared, 150);
}

TEST(Metrics, ConstantTargetsHaveNoRSquared) {
  EXPECT_FALSE(r_squared(Numbers{1, 2, 3}, Numbers{0.1, 0.1, 0.1}));
  EXPECT_FALSE(r_squared(Numbers{1}, Numbers{1}));
  EXPECT_TRUE(r_squared(Numbers{0.1, 0.1, 0.1}, Numbers{1, 2, 3}));
}

TEST(Metrics, OfEqualLogitsTheLowerClassComesFirst) {
  const Numbers logits = {1, 1, 0, 0, 2, 2};
  EXPECT_EQ(top_k_accuracy(logits, 3, Labels{0, 1}, 1), 1);
  EXPECT_EQ(top_k_accuracy(logits, 3, Labels{1, 2}, 1), 0);
  EXPECT_EQ(top_k_accuracy(logits, 3, Labels{1, 2}, 2), 1);
  EXPECT_EQ(top_k_accuracy(logits, 3, Labels{2, 0}, 2), 0);
  EXPECT_EQ(top_k_accuracy(logits, 3, Labels{2, 0}, 3), 1);
}

TEST(Metrics, InfiniteScoresAreTheHighestAndTheLowest) {
  EXPECT_EQ(roc_auc(Numbers{kInfinity, -kInfinity, 0}, Labels{1, 0, 0}), 1);
  EXPECT_EQ(roc_auc(Numbers{kInfinity, kInfinity}, Labels{1, 0}), 0.5);
  const Detections found = detections_at(kInfinity, Numbers{kInfinity, 3}, Labels{1, 1});
  EXPECT_EQ(found.true_positives, 1);
  EXPECT_EQ(found.false_negatives, 1);
}

/// An example of each score that lies on the way between two corners is no corner.
TEST(Metrics, TheCurveHasCornersOnly) {
  const std::vector<RocPoint> curve = roc_curve(Numbers{9, 8, 7, 6, 5, 4}, Labels{1, 1, 1, 0, 0, 0});
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].threshold, kInfinity);
  EXPECT_EQ(curve[1].threshold, 7);
  EXPECT_EQ(curve[1].true_positive_rate, 1);
  EXPECT_EQ(curve[1].false_positive_rate, 0);
  EXPECT_EQ(curve[2].threshold, 4);
}

TEST(Metrics, DetectionsAreCounted) {
  const Detections found = detections_at(0.5, Numbers{0.5, 0.4, 0.9, 0.1, 0.7}, Labels{1, 1, 0, 0, 1});
  EXPECT_EQ(found.true_positives, 2);
  EXPECT_EQ(found.false_negatives, 1);
  EXPECT_EQ(found.false_positives, 1);
  EXPECT_EQ(found.true_negatives, 1);
  const Detections none = detections_at(0.5, Numbers{0.1}, Labels{0});
  EXPECT_FALSE(none.precision());
  EXPECT_FALSE(none.recall());
  EXPECT_FALSE(none.f1());
}

/// Sorted, not compared pair by pair. Scores of normal numbers one deviation apart have an area of Phi(1 / sqrt(2)).
TEST(Metrics, AMillionScoresTakeAMoment) {
  constexpr std::size_t kCount = 1'000'000;
  Random random(3);
  Numbers scores(kCount);
  Labels labels(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    labels[i] = random.below(4) == 0 ? 1 : 0;
    scores[i] = random.normal() + static_cast<float>(labels[i]);
  }
  EXPECT_NEAR(roc_auc(scores, labels), 0.5 * std::erfc(-0.5), 0.002);
  const std::vector<RocPoint> curve = roc_curve(scores, labels);
  double area = 0;
  for (std::size_t i = 1; i < curve.size(); ++i)
    area += (curve[i].false_positive_rate - curve[i - 1].false_positive_rate) *
            (curve[i].true_positive_rate + curve[i - 1].true_positive_rate) / 2;
  EXPECT_NEAR(area, roc_auc(scores, labels), 1e-9);
}

TEST(Metrics, WhatCannotBeMeasuredIsNamed) {
  const Numbers one = {1}, two = {1, 2}, bad = {1, kNaN};
  const Labels both = {0, 1};
  const auto expect = [](const auto& measure, const std::string& part) {
    EXPECT_TRUE(mentions(error_of(measure), {part}));
  };
  expect([&] { mean_squared_error(bad, two); }, "prediction 1 is NaN");
  expect([&] { mean_absolute_error(two, bad); }, "target 1 is NaN");
  expect([&] { r_squared(bad, two); }, "prediction 1 is NaN");
  expect([&] { mean_squared_error(one, two); }, "there are 1 predictions and 2 targets");
  expect([&] { mean_absolute_error({}, {}); }, "there is no prediction to measure");
  expect([&] { roc_auc(bad, both); }, "score 1 is NaN");
  expect([&] { roc_auc(one, both); }, "there are 1 scores and 2 labels");
  expect([&] { roc_auc(two, Labels{0, 0}); }, "all 2 labels are 0 (negative)");
  expect([&] { partial_roc_auc(two, Labels{1, 1}, 0.1); }, "all 2 labels are 1 (positive)");
  expect([&] { roc_curve(two, Labels{1, 1}); }, "all 2 labels are 1 (positive)");
  expect([&] { roc_curve(two, Labels{0, 2}); }, "label 2 of example 1 is neither 0 nor 1");
  expect([&] { detections_at(0, two, Labels{-1, 1}); }, "label -1 of example 0");
  expect([&] { detections_at(kNaN, two, both); }, "the threshold is NaN");
  for (const double p : {0.0, 1.5, -0.1, kNaN})
    expect([&] { partial_roc_auc(two, both, p); }, "must be above 0 and at most 1");
  expect([&] { top_k_accuracy(bad, 2, Labels{0}, 1); }, "logit 1 is NaN");
  expect([&] { top_k_accuracy(two, 2, both, 1); }, "there are 2 logits of 2 classes and 2 labels");
  expect([&] { top_k_accuracy(two, 2, Labels{2}, 1); }, "label 2 of example 0 is outside [0, 2)");
  expect([&] { top_k_accuracy(two, 2, Labels{0}, 3); }, "1 to 2 of 2 classes, not 3");
  expect([&] { top_k_accuracy(two, 2, Labels{0}, 0); }, "1 to 2 of 2 classes, not 0");
}

}  // namespace
}  // namespace miniqat::training::metrics_test
