#include "training/task/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/tensors/eigen.h"
#include "core/text/classic.h"
#include "core/text/error.h"

namespace miniqat::training {
namespace {

/// m = max_c z_c, NaN if one is. With e^(z - m) in place of e^z no sum overflows.
double highest(const Eigen::ArrayXd& z) { return z.maxCoeff<Eigen::PropagateNaN>(); }

}  // namespace

std::string Measure::text() const { return kind->is_share ? percent(value) : formatted("%.4g", value); }

std::vector<double> class_scores(std::span<const float> logits) {
  const Eigen::ArrayXd z = vector_of(logits).cast<double>();
  const Eigen::ArrayXd powers = (z - highest(z)).exp();
  std::vector<double> scores(logits.size());
  vector_of(std::span(scores)) = powers / powers.sum();
  return scores;
}

double cross_entropy(std::span<const float> logits, std::int64_t label) {
  const Eigen::ArrayXd z = vector_of(logits).cast<double>();
  const double m = highest(z);
  return m + std::log((z - m).exp().sum()) - z[label];
}

bool Finding::has_both() const {
  return std::ranges::find(labels, 0) != labels.end() && std::ranges::find(labels, 1) != labels.end();
}

std::optional<double> Evaluation::find(std::string_view key) const {
  const auto found = std::ranges::find(measures, key, [](const Measure& one) { return one.kind->key; });
  return found == measures.end() ? std::nullopt : std::optional(found->value);
}

std::int64_t Evaluation::correct() const { return std::llround(accuracy() * static_cast<double>(examples)); }

std::string Evaluation::text(bool with_details) const {
  std::string text;
  for (const Measure& one : measures) {
    if (one.is_quiet || one.mixes_units) continue;
    text += concat(text.empty() ? "" : ", ", one.kind->brief, " ", one.text());
    if (with_details && !one.detail.empty()) text += concat(" (", one.detail, ")");
  }
  return text;
}

bool Evaluation::has_uneven_classes() const {
  std::int64_t least = 0, most = 0;
  for (const ClassHits& one : by_class) {
    if (one.labels > 0 && (least == 0 || one.labels < least)) least = one.labels;
    most = std::max(most, one.labels);
  }
  return most > 2 * least;
}

bool is_better(const Evaluation& a, const Evaluation& b, std::string_view key) {
  const auto rank = [&](const Evaluation& one) {
    const auto found = std::ranges::find(one.measures, key, [](const Measure& measure) { return measure.kind->key; });
    const bool known = found != one.measures.end() && !std::isnan(found->value);
    const double loss = std::isnan(one.loss) ? std::numeric_limits<double>::infinity() : one.loss;
    return std::tuple(known, !known ? 0 : found->kind->less_is_better ? -found->value : found->value, -loss);
  };
  return rank(a) > rank(b);
}

}  // namespace miniqat::training
