#include "training/task/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/text/error.h"

namespace miniqat::training {
namespace {

void require_numbers(std::span<const double> values, std::string_view role) {
  if (values.empty()) fail("there is no ", role, " to measure");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isnan(values[i])) fail(role, " ", i, " is NaN");
}

void require_pairs(std::span<const double> values, std::string_view role, std::size_t others, std::string_view other) {
  require_numbers(values, role);
  if (values.size() != others) fail("there are ", values.size(), " ", role, "s and ", others, " ", other, "s");
}

void require_regression(std::span<const double> predictions, std::span<const double> targets) {
  require_pairs(predictions, "prediction", targets.size(), "target");
  require_numbers(targets, "target");
}

void require_scores(std::span<const double> scores, std::span<const std::int32_t> labels) {
  require_pairs(scores, "score", labels.size(), "label");
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != 0 && labels[i] != 1) fail("label ", labels[i], " of example ", i, " is neither 0 nor 1");
}

/// Positives and negatives from the highest score down: after each distinct score, how many were at least as high.
struct Reached {
  std::int64_t negatives = 0;
  std::int64_t positives = 0;
  double score = std::numeric_limits<double>::infinity();
};

/// Begins with nothing reached and ends with all. Takes O(n log n).
std::vector<Reached> reached_by_score(std::span<const double> scores, std::span<const std::int32_t> labels) {
  require_scores(scores, labels);
  std::vector<std::pair<double, std::int32_t>> examples(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) examples[i] = {scores[i], labels[i]};
  std::ranges::sort(examples, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Reached> reached = {{}};
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (i == 0 || examples[i].first != examples[i - 1].first) reached.push_back(reached.back());
    Reached& last = reached.back();
    last.score = examples[i].first;
    (examples[i].second == 1 ? last.positives : last.negatives) += 1;
  }
  const Reached& all = reached.back();
  if (all.positives == 0 || all.negatives == 0)
    fail("all ", labels.size(), " labels are ", all.positives == 0 ? "0 (negative)" : "1 (positive)",
         ": a ROC curve needs both");
  return reached;
}

/// Whether b lies on the straight way from a to c.
bool is_between(const Reached& a, const Reached& b, const Reached& c) {
  const auto product = [](std::int64_t x, std::int64_t y) { return static_cast<double>(x) * static_cast<double>(y); };
  return product(b.negatives - a.negatives, c.positives - b.positives) ==
         product(c.negatives - b.negatives, b.positives - a.positives);
}

std::optional<double> share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// How many classes come before `label`: those with a higher logit, and of equal ones the lower.
std::int64_t rank_of(std::span<const double> logits, std::int32_t label) {
  std::int64_t rank = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double other = logits[c], own = logits[static_cast<std::size_t>(label)];
    if (other > own || (other == own && std::cmp_less(c, label))) ++rank;
  }
  return rank;
}

}  // namespace

double mean_squared_error(std::span<const double> predictions, std::span<const double> targets) {
  require_regression(predictions, targets);
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double error = predictions[i] - targets[i];
    sum += error * error;
  }
  return sum / static_cast<double>(targets.size());
}

double mean_absolute_error(std::span<const double> predictions, std::span<const double> targets) {
  require_regression(predictions, targets);
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) sum += std::abs(predictions[i] - targets[i]);
  return sum / static_cast<double>(targets.size());
}

std::optional<double> r_squared(std::span<const double> predictions, std::span<const double> targets) {
  const double error = mean_squared_error(predictions, targets);
  if (std::ranges::all_of(targets, [&](double target) { return target == targets.front(); })) return std::nullopt;
  const auto count = static_cast<double>(targets.size());
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / count;
  double squares = 0;
  for (const double target : targets) squares += (target - mean) * (target - mean);
  return 1 - error * count / squares;
}

double top_k_accuracy(std::span<const double> logits, std::int64_t classes, std::span<const std::int32_t> labels,
                      std::int64_t k) {
  require_numbers(logits, "logit");
  if (classes < 1 || std::ssize(logits) != std::ssize(labels) * classes)
    fail("there are ", logits.size(), " logits of ", counted(classes, "class"), " and ",
         counted(labels.size(), "label"));
  if (k < 1 || k > classes)
    fail("a label is among the first 1 to ", classes, " of ", counted(classes, "class"), ", not ", k);
  std::int64_t hits = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes)
      fail("label ", labels[i], " of example ", i, " is outside [0, ", classes, ")");
    const auto columns = static_cast<std::size_t>(classes);
    if (rank_of(logits.subspan(i * columns, columns), labels[i]) < k) ++hits;
  }
  return static_cast<double>(hits) / static_cast<double>(labels.size());
}

std::vector<RocPoint> roc_curve(std::span<const double> scores, std::span<const std::int32_t> labels) {
  const std::vector<Reached> reached = reached_by_score(scores, labels);
  std::vector<Reached> corners;
  for (const Reached& next : reached) {
    if (corners.size() >= 2 && is_between(corners[corners.size() - 2], corners.back(), next)) corners.pop_back();
    corners.push_back(next);
  }
  std::vector<RocPoint> points;
  for (const Reached& corner : corners)
    points.push_back({.false_positive_rate = *share(corner.negatives, reached.back().negatives),
                      .true_positive_rate = *share(corner.positives, reached.back().positives),
                      .threshold = corner.score});
  return points;
}

double roc_auc(std::span<const double> scores, std::span<const std::int32_t> labels) {
  return partial_roc_auc(scores, labels, 1);
}

double partial_roc_auc(std::span<const double> scores, std::span<const std::int32_t> labels,
                       double most_false_positives) {
  const double p = most_false_positives;
  if (!(p > 0 && p <= 1)) fail("the largest false positive rate must be above 0 and at most 1, not ", p);
  const std::vector<Reached> reached = reached_by_score(scores, labels);
  // In counts, whose products are whole numbers: negatives to the right, positives upwards.
  const auto right = static_cast<double>(reached.back().negatives), up = static_cast<double>(reached.back().positives);
  const double end = p * right;
  double area = 0;
  for (std::size_t i = 1; i < reached.size(); ++i) {
    const auto from = static_cast<double>(reached[i - 1].negatives), to = static_cast<double>(reached[i].negatives);
    const auto low = static_cast<double>(reached[i - 1].positives), high = static_cast<double>(reached[i].positives);
    if (from >= end) break;
    if (to == from) continue;
    const double width = std::min(to, end) - from;
    area += width * (low + 0.5 * (high - low) * width / (to - from));
  }
  area /= right * up;
  const double of_nothing = 0.5 * p * p;
  return 0.5 * (1 + (area - of_nothing) / (p - of_nothing));
}

std::optional<double> Detections::precision() const { return share(true_positives, true_positives + false_positives); }

std::optional<double> Detections::recall() const { return share(true_positives, true_positives + false_negatives); }

std::optional<double> Detections::f1() const {
  return share(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
}

Detections detections_at(double threshold, std::span<const double> scores, std::span<const std::int32_t> labels) {
  require_scores(scores, labels);
  if (std::isnan(threshold)) fail("the threshold is NaN");
  Detections found;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const bool is_found = scores[i] >= threshold;
    if (labels[i] == 1)
      ++(is_found ? found.true_positives : found.false_negatives);
    else
      ++(is_found ? found.false_positives : found.true_negatives);
  }
  return found;
}

}  // namespace miniqat::training
