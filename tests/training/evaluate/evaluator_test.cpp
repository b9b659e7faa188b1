#include "training/evaluate/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "layers/layers.h"
#include "models/blocks.h"
#include "tests/errors.h"
#include "tests/training/answered.h"
#include "training/model_source.h"

namespace miniqat::training::evaluator_test {
namespace {

using testing::Answered;
using testing::error_of;
using testing::evaluated;
using testing::mentions;

TEST(Evaluation, CountsTheFirstOfTheLargest) {
  // Of equal logits the lower class is the answer.
  const Evaluation evaluation = evaluated({{{1, 3, 2}, 1}, {{3, 3, 2}, 0}, {{3, 3, 2}, 1}, {{-1, -3, -2}, 2}});
  EXPECT_EQ(evaluation.correct(), 2);
  EXPECT_EQ(evaluation.examples, 4);
  EXPECT_EQ(evaluation.accuracy(), 0.5);
  EXPECT_EQ(evaluation.text(true), "accuracy 50.00% (2 of 4)");
}

TEST(Evaluation, ANaNIsWrongWhereverItStands) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int place : {0, 1, 2})
    for (const int label : {0, 1, 2}) {
      std::vector<float> logits = {1, 1, 1};
      logits[place] = kNan;
      EXPECT_EQ(evaluated({{logits, label}}).correct(), 0) << place << " " << label;
    }
}

TEST(Evaluation, TheLossIsTheMeanCrossEntropyWithoutOverflow) {
  EXPECT_NEAR(cross_entropy(std::vector<float>{5, 5, 5, 5}, 3), std::log(4.0), 1e-7);
  EXPECT_NEAR(cross_entropy(std::vector<float>{-900, -100, -900}, 1), 0, 1e-7);
  const Evaluation evaluation = evaluated({{{1000, 1000}, 0}, {{0, std::log(3.0f)}, 1}});
  EXPECT_NEAR(evaluation.loss, (std::log(2.0) - std::log(0.75)) / 2, 1e-7);
}

TEST(Evaluation, BalancedAccuracyIsTheMeanOfTheClassesThatHaveExamples) {
  const std::vector<float> zero = {1, 0, 0, 0}, one = {0, 1, 0, 0};
  std::vector<Answered> answers(8, {zero, 0});
  answers.insert(answers.end(), {{one, 1}, {zero, 1}, {zero, 2}, {zero, 2}, {zero, 2}, {zero, 2}});
  const Evaluation evaluation = evaluated(answers);
  EXPECT_DOUBLE_EQ(*evaluation.find("balanced_accuracy"), (1 + 0.5 + 0) / 3);
  EXPECT_DOUBLE_EQ(evaluation.accuracy(), 9.0 / 14);
  EXPECT_TRUE(evaluation.has_uneven_classes());
  EXPECT_EQ(evaluation.text(false), "accuracy 64.29%, balanced 50.00%");
  EXPECT_EQ(evaluation.by_class[0].answers, 13);
  EXPECT_EQ(evaluation.by_class[1].labels, 2);
  EXPECT_EQ(evaluation.by_class[1].correct, 1);
  std::vector<Answered> even;
  for (const int label : {0, 0, 1, 1, 1, 1, 2, 2}) even.emplace_back(zero, label);
  EXPECT_FALSE(evaluated(even).has_uneven_classes()) << "a factor of two, not more";
  EXPECT_FALSE(Evaluation().has_uneven_classes());
}

/// Nine pictures of one class, one of another: the first network answers the frequent class always.
TEST(Evaluation, TheBetterOneDependsOnWhatCounts) {
  const std::vector<float> zero = {1, 0}, one = {0, 1};
  std::vector<Answered> always, some;
  for (int i = 0; i < 10; ++i) {
    always.emplace_back(zero, i == 0);
    some.emplace_back(i < 3 ? one : zero, i == 0);
  }
  const Evaluation frequent = evaluated(always), fair = evaluated(some);
  EXPECT_EQ(frequent.correct(), 9);
  EXPECT_EQ(fair.correct(), 8);
  EXPECT_TRUE(is_better(frequent, fair, "accuracy"));
  EXPECT_FALSE(is_better(fair, frequent, "accuracy"));
  EXPECT_TRUE(is_better(fair, frequent, "balanced_accuracy"));
  EXPECT_FALSE(is_better(frequent, fair, "balanced_accuracy"));
  Evaluation surer = fair;
  surer.loss -= 0.1;
  for (const char* key : {"accuracy", "balanced_accuracy"}) EXPECT_TRUE(is_better(surer, fair, key)) << "among equals";
  EXPECT_FALSE(is_better(fair, fair, "balanced_accuracy"));
}

TEST(Evaluation, ANaNIsWorseThanEveryNumber) {
  const Evaluation right = evaluated({{{1, 3}, 1}, {{3, 1}, 1}});
  Evaluation no_loss = right, no_accuracy = right;
  no_loss.loss = std::numeric_limits<double>::quiet_NaN();
  no_accuracy.measures.front().value = no_loss.loss;
  Evaluation wrong = right;
  wrong.measures.front().value = 0;
  EXPECT_TRUE(is_better(right, no_loss, "accuracy"));
  EXPECT_TRUE(is_better(wrong, no_accuracy, "accuracy"));
  for (const Evaluation& worse : {no_loss, no_accuracy}) EXPECT_FALSE(is_better(worse, right, "accuracy"));
}

TEST(Evaluation, NothingHasNoAccuracy) {
  const Evaluation nothing = Tally(classification(), 3).conclude({.name = "nothing", .classes = 3});
  EXPECT_EQ(nothing.accuracy(), 0);
  EXPECT_EQ(nothing.loss, 0);
  EXPECT_FALSE(nothing.find("balanced_accuracy"));
}

/// Seven pictures of one pixel, whose byte k says the class: of the logits 255 x k - k^2 / 2, with x = byte / 255, that
/// of k = byte is the largest.
TEST(Evaluate, GoesOverAllPicturesAlsoThoseOfAnIncompleteBatch) {
  datasets::Dataset data{.name = "bytes",
                         .images = Tensor(Shape{7, 1, 1, 1}, DType::kUInt8),
                         .labels = Tensor(Shape{7}, DType::kInt32),
                         .classes = 3};
  for (int i = 0; i < 7; ++i) {
    data.images.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 3);
    data.labels.data<std::int32_t>()[i] = i % 3;
  }
  // Labelled wrongly, in the last, incomplete batch.
  data.labels.data<std::int32_t>()[6] = 1;
  Classifier classifier;
  classifier.images = layers::placeholder(classifier.graph, "images", {3, 1, 1, 1});
  classifier.logits =
      models::dense(classifier.graph, "fc", models::flatten(classifier.graph, "flat", classifier.images), 3);
  Session session(classifier.graph);
  session.set_variable("fc/weights", Tensor::from<float>({1, 3}, std::vector<float>{0, 255, 510}));
  session.set_variable("fc/biases", Tensor::from<float>({3}, std::vector<float>{0, -0.5f, -2}));
  const Evaluation result = evaluate(session, classifier, data);
  EXPECT_EQ(result.examples, 7);
  EXPECT_EQ(result.correct(), 6);
}

/// Networks that give their two inputs back, and data that have other answers than the task needs.
TEST(Evaluate, RefusesExamplesWithoutTheAnswersOfTheTask) {
  datasets::Dataset data{.name = "pairs", .images = Tensor(Shape{4, 2}), .targets = Tensor(Shape{4, 2})};
  Classifier classifier;
  classifier.task = &regression();
  classifier.images = layers::placeholder(classifier.graph, "inputs", {3, 2});
  classifier.logits = layers::identity(classifier.graph, "same", classifier.images);
  Session session(classifier.graph);
  const integer::Grid grid = {.scale = 1, .zero_point = 0, .bits = 8};
  const integer::Model model{
      .name = "same",
      .tensors = {{.name = "inputs", .shape = {2}, .grid = grid}, {.name = "same", .shape = {2}, .grid = grid}},
      .operations = {{.name = "same", .action = integer::Reshape{}, .inputs = {0}, .output = 1}},
      .output = 1};
  EXPECT_EQ(evaluate(session, classifier, data).examples, 4);
  EXPECT_EQ(evaluate_integers(model, regression(), data).examples, 4);
  for (const Tensor& targets : {Tensor(), Tensor(Shape{4, 3})}) {
    data.targets = targets;
    EXPECT_TRUE(mentions(error_of([&] { evaluate(session, classifier, data); }), {"pairs"}));
    EXPECT_TRUE(mentions(error_of([&] { evaluate_integers(model, regression(), data); }), {"pairs"}));
  }
}

}  // namespace
}  // namespace miniqat::training::evaluator_test
