#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/layers.h"
#include "training/task/metrics.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

constexpr double kFewFalseAlarms = 0.1;

constexpr MeasureKind kAnomalyMeasures[] = {
    {.name = "AUC", .brief = "AUC", .key = "auc"},
    {.name = "partial AUC up to 0.1", .brief = "partial AUC", .key = "partial_auc"},
    {.name = "mean squared error", .brief = "MSE", .key = "mse", .less_is_better = true}};

/// The numbers of an example; the label is -1 where the data have no classes.
enum AnomalyScore : std::size_t { kError, kClass, kAnomalyScores };

TrainingEnds add_reconstruction_loss(Graph& graph, const Output& input, const Output& output,
                                     const LossOptions& options) {
  Output target = input;
  if (output.shape() != input.shape()) {
    const std::span<const std::int64_t> extents = output.shape().extents();
    std::vector<std::int64_t> shape(extents.begin(), extents.end());
    shape.front() = -1;
    target = layers::reshape(graph, graph.unique_name("target"), input, {.shape = shape});
  }
  return {{}, add_loss_of_numbers(graph, output, target, options)};
}

void score_reconstruction(std::span<const float> output, const datasets::Examples& batch, std::int64_t row,
                          std::span<double> scores) {
  const auto first = static_cast<std::size_t>(row) * output.size();
  double squares = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double error = static_cast<double>(output[i]) - batch.number(first + i);
    squares += error * error;
  }
  scores[kError] = squares / static_cast<double>(output.size());
  scores[kClass] = batch.labels.defined() ? batch.labels.values<std::int32_t>()[static_cast<std::size_t>(row)] : -1;
}

Evaluation conclude_reconstruction(const Scored& scored) {
  Evaluation result{.examples = std::ssize(scored.scores) / static_cast<std::int64_t>(kAnomalyScores)};
  if (result.examples == 0) return result;
  Finding& found = result.findings.emplace_back();
  found.scores = scored.column(kError);
  for (const double label : scored.column(kClass)) found.labels.push_back(label > 0 ? 1 : 0);
  const std::vector<double>& errors = result.losses = found.scores;
  const std::vector<std::int32_t>& anomalies = found.labels;
  for (const double error : errors) result.loss += error / static_cast<double>(result.examples);
  const auto [least, most] = std::ranges::minmax(anomalies);
  if (least != most && !std::isnan(result.loss)) {
    result.measures.push_back({&kAnomalyMeasures[0], roc_auc(errors, anomalies)});
    result.measures.push_back({&kAnomalyMeasures[1], partial_roc_auc(errors, anomalies, kFewFalseAlarms)});
  }
  result.measures.push_back({&kAnomalyMeasures[2], result.loss});
  return result;
}

}  // namespace

const Task& reconstruction() {
  static constexpr Task kTask{
      .name = "reconstruct",
      .outputs = "numbers",
      .finding = "anomaly",
      .measures = kAnomalyMeasures,
      .outputs_for = [](const datasets::Dataset& data) { return data.example_shape().elements(); },
      .add_loss = add_reconstruction_loss,
      .target_of = [](const datasets::Examples&) { return Tensor(); },
      .scores = [](std::int64_t) -> std::size_t { return kAnomalyScores; },
      .score = score_reconstruction,
      .conclude = conclude_reconstruction};
  return kTask;
}

}  // namespace miniqat::training
