#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// How good a network's numbers are, as pure functions over all examples, in double; docs/metrics.md has them in plain
// words. Throw Error for numbers that are NaN (naming the first), for lists of different lengths and for none at all.
// Tests compare with scikit-learn (experiments/metrics_by_sklearn.py).

namespace miniqat::training {

// Numbers beside what they should be.

/// The mean of (prediction - target)^2.
double mean_squared_error(std::span<const double> predictions, std::span<const double> targets);

/// The mean of |prediction - target|.
double mean_absolute_error(std::span<const double> predictions, std::span<const double> targets);

/// The coefficient of determination, 1 - sum of (prediction - target)^2 / sum of (target - mean of targets)^2: 1 for
/// perfect predictions, 0 for the mean as every prediction, below 0 for worse ones (Draper and Smith 1998, Applied
/// Regression Analysis, section 1.3). None where all targets are equal, which leaves nothing to explain.
std::optional<double> r_squared(std::span<const double> predictions, std::span<const double> targets);

// Classes.

/// The share of examples whose label is among the k classes with the highest logits; ties go to the lower class.
/// `logits` has a row of `classes` numbers for each label. Throws Error for a label or a k that does not fit.
double top_k_accuracy(std::span<const double> logits, std::int64_t classes, std::span<const std::int32_t> labels,
                      std::int64_t k);

// A score for each example and a label, 1 for a positive (what is looked for: an anomaly, say), 0 for a negative. Throw
// Error for any other label. A higher score says "positive".

/// A point of the ROC curve: of the negatives and of the positives, the shares that have a score of at least
/// `threshold`.
struct RocPoint {
  double false_positive_rate = 0;
  double true_positive_rate = 0;
  double threshold = 0;
};

/// The corners of the curve (Fawcett 2006, An introduction to ROC analysis, algorithm 1), from (0, 0), whose threshold
/// is infinite, to (1, 1); examples of equal scores are one straight stretch. Points on the way from one corner to the
/// next are left out. Throws Error for labels of one class.
std::vector<RocPoint> roc_curve(std::span<const double> scores, std::span<const std::int32_t> labels);

/// The area under that curve: the chance that a positive has a higher score than a negative, where equal scores count
/// half (Mann and Whitney 1947; Hanley and McNeil 1982). 0.5 for scores that say nothing. Throws Error for labels of
/// one class.
double roc_auc(std::span<const double> scores, std::span<const std::int32_t> labels);

/// The area under the curve up to the false positive rate p, in (0, 1], between its straight lines, standardised to 0.5
/// for scores that say nothing and 1 for perfect ones: (1 + (area - p^2 / 2) / (p - p^2 / 2)) / 2 (McClish 1989,
/// "Analyzing a portion of the ROC curve"). scikit-learn's roc_auc_score(max_fpr=p); MLPerf Tiny and task 2 of DCASE
/// 2020 have p = 0.1. Throws Error for labels of one class.
double partial_roc_auc(std::span<const double> scores, std::span<const std::int32_t> labels,
                       double most_false_positives);

/// What is found with a threshold. A share of nothing is none, so labels may be of one class.
struct Detections {
  std::int64_t true_positives = 0;
  std::int64_t false_positives = 0;
  std::int64_t false_negatives = 0;
  std::int64_t true_negatives = 0;

  /// The share of positives among what is found.
  std::optional<double> precision() const;
  /// The share of the positives that is found.
  std::optional<double> recall() const;
  /// The harmonic mean of both, 2 TP / (2 TP + FP + FN) (van Rijsbergen 1979, Information Retrieval, chapter 7).
  std::optional<double> f1() const;
};

/// Found are the examples with a score of at least `threshold`.
Detections detections_at(double threshold, std::span<const double> scores, std::span<const std::int32_t> labels);

}  // namespace miniqat::training
