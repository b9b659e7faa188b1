#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/figures.h"

namespace miniqat::training {

/// A kind of number that says how good a network is (docs/metrics.md).
struct MeasureKind {
  /// "balanced accuracy", "R^2".
  const char* name;
  /// In a line that has the accuracy already: "balanced".
  const char* brief;
  /// In JSON, behind the name of a part: "accuracy" in "test_accuracy".
  const char* key;
  /// A share of the examples, printed in percent.
  bool is_share = false;
  bool less_is_better = false;
};

/// One number of that kind.
struct Measure {
  const MeasureKind* kind = nullptr;
  double value = 0;
  /// How it came about, for people: "98 of 100", or "".
  std::string detail = {};
  /// Measured, but not worth a word to people: the balanced accuracy of even classes.
  bool is_quiet = false;
  /// The mean over numbers in several units, which is for programs alone.
  bool mixes_units = false;

  /// "98.00%", "0.9312".
  std::string text() const;
};

/// The softmax of logits, in double: scores between 0 and 1 that add up to 1. All are NaN if a logit is.
std::vector<double> class_scores(std::span<const float> logits);

/// -log of the label's score, in double and without overflow. NaN if a logit is.
double cross_entropy(std::span<const float> logits, std::int64_t label);

/// How often a class was the label, the answer, and both.
struct ClassHits {
  std::int64_t labels = 0;
  std::int64_t answers = 0;
  std::int64_t correct = 0;
};

/// What is looked for in each example, an anomaly or one label of several, and how much the network speaks for it.
struct Finding {
  /// The error of a reconstruction, or the probability of a label, 0 to 1.
  std::vector<double> scores = {};
  /// 1 where it is there, else 0; empty where the data do not say.
  std::vector<std::int32_t> labels = {};
  /// The logits of a label, which tell examples apart whose probabilities are rounded to the same number; empty for
  /// anomalies.
  std::vector<double> logits = {};

  /// Whether it is there in some examples and not in others, as a ROC curve needs.
  bool has_both() const;
  /// What a ROC curve orders the examples by.
  const std::vector<double>& ranks() const { return logits.empty() ? scores : logits; }
};

/// How far a network's numbers are off one of several targets, in its own unit.
struct TargetErrors {
  /// None where all targets are equal.
  std::optional<double> r2 = {};
  double mean_absolute = 0;
  double mean_squared = 0;
};

/// What came of a network's outputs for the examples of a data set.
struct Evaluation {
  std::int64_t examples = 0;
  /// The mean of the task's loss over the examples.
  double loss = 0;
  /// The first decides which of two networks is better. Empty where there are no examples.
  std::vector<Measure> measures = {};
  /// For each class, of classes; empty for any other task, and where only a summary of an evaluation is known.
  std::vector<ClassHits> by_class = {};
  /// The loss of each example; empty where only a summary is known.
  std::vector<double> losses = {};
  /// For each label of `multilabel`; one of `reconstruct`, without labels where the data have no classes.
  /// Empty for any other task, and where only a summary is known.
  std::vector<Finding> findings = {};
  /// For each number of `regress`; empty for any other task, and where only a summary is known.
  std::vector<TargetErrors> by_target = {};

  const Measure& main() const { return measures.front(); }
  /// The measure with that key; none if it was not measured.
  std::optional<double> find(std::string_view key) const;
  /// The share of right answers; 0 where the task is none of classes.
  double accuracy() const { return find("accuracy").value_or(0); }
  std::int64_t correct() const;
  /// "accuracy 98.00% (98 of 100), balanced 71.20%". `with_details`: with what is in brackets.
  std::string text(bool with_details) const;
  /// Whether the most frequent class has more than twice the examples of the rarest that has any, so that accuracy says
  /// little of the rare ones.
  bool has_uneven_classes() const;
};

/// Whether `a` is the better network by the measure with that key; among equals by the loss. A NaN is worse than every
/// number. Both of the same examples.
bool is_better(const Evaluation& a, const Evaluation& b, std::string_view key);

}  // namespace miniqat::training
