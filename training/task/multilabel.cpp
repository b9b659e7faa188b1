#include <algorithm>
#include <cmath>
#include <vector>

#include "core/text/error.h"
#include "layers/layers.h"
#include "training/task/metrics.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

constexpr MeasureKind kLabelMeasures[] = {
    {.name = "accuracy of the labels", .brief = "label accuracy", .key = "label_accuracy", .is_share = true},
    {.name = "F1, mean over the labels", .brief = "F1", .key = "f1"}};

std::int64_t labels_of_data(const datasets::Dataset& data) {
  if (data.has_classes() && !data.targets.defined())
    fail("data set ", data.name,
         " has classes, no labels of which several may hold; a column of zeros and ones is one with `answers` targets");
  if (!data.targets.defined() || data.target_standard)
    fail("data set ", data.name, " has no labels of zeros and ones, of which several may hold");
  return data.targets.shape()[1];
}

TrainingEnds add_label_loss(Graph& graph, const Output&, const Output& logits, const LossOptions& options) {
  options.require_no_classes();
  options.require_no_numbers();
  const Output targets = layers::placeholder(graph, graph.unique_name("targets"), logits.shape());
  return {targets, layers::sigmoid_cross_entropy(graph, logits, targets, graph.unique_name("loss"))};
}

/// -log of the probability that a logit gives to what holds, without overflow.
double loss_of(double logit, double holds) {
  return std::max(logit, 0.0) - logit * holds + std::log1p(std::exp(-std::abs(logit)));
}

Evaluation conclude_labels(const Scored& scored) {
  const auto outputs = static_cast<std::size_t>(scored.outputs);
  Evaluation result{.examples = std::ssize(scored.scores) / (2 * scored.outputs)};
  if (result.examples == 0) return result;
  result.losses.resize(static_cast<std::size_t>(result.examples));
  const double all = static_cast<double>(result.examples) * static_cast<double>(outputs);
  std::int64_t right = 0;
  double sum = 0;
  int with_f1 = 0;
  for (std::size_t k = 0; k < outputs; ++k) {
    Finding& finding = result.findings.emplace_back();
    finding.logits = scored.column(k);
    const std::vector<double>& logits = finding.logits;
    const std::vector<double> holds = scored.column(outputs + k);
    Detections found;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double loss = loss_of(logits[i], holds[i]);
      result.loss += loss / all;
      result.losses[i] += loss / static_cast<double>(outputs);
      finding.scores.push_back(1 / (1 + std::exp(-logits[i])));
      finding.labels.push_back(holds[i] > 0.5 ? 1 : 0);
      // A NaN finds nothing, and is no right answer either.
      const bool says = logits[i] >= 0, is = holds[i] > 0.5;
      if (says == is && !std::isnan(logits[i])) ++right;
      (says ? is ? found.true_positives : found.false_positives : is ? found.false_negatives : found.true_negatives)++;
    }
    if (const std::optional<double> f1 = found.f1()) {
      sum += *f1;
      ++with_f1;
    }
  }
  result.measures.push_back(
      {&kLabelMeasures[0], static_cast<double>(right) / all, concat(right, " of ", result.examples * scored.outputs)});
  if (with_f1 > 0) result.measures.push_back({&kLabelMeasures[1], sum / with_f1});
  return result;
}

}  // namespace

const Task& multilabel() {
  static constexpr Task kTask{.name = "multilabel",
                              .outputs = "logits",
                              .finding = "label",
                              .op_of_loss = layers::Sigmoid::kType,
                              .measures = kLabelMeasures,
                              .outputs_for = labels_of_data,
                              .add_loss = add_label_loss,
                              .target_of = [](const datasets::Examples& batch) { return batch.targets; },
                              .scores = [](std::int64_t outputs) { return 2 * static_cast<std::size_t>(outputs); },
                              .score = score_targets,
                              .conclude = conclude_labels};
  return kTask;
}

}  // namespace miniqat::training
