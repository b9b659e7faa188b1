#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/text/suggest.h"
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

/// The numbers of an example; the label is -1 where the data have no classes, the recording where these are no sounds.
enum AnomalyScore : std::size_t { kError, kClass, kRecording, kAnomalyScores };

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
  const auto number_at = [&](const Tensor& numbers, std::int64_t place) -> double {
    return numbers.defined() ? numbers.values<std::int32_t>()[static_cast<std::size_t>(place)] : -1;
  };
  scores[kClass] = number_at(batch.labels, row);
  scores[kRecording] = number_at(batch.recordings, 2 * row);
}

/// One for each example, or for the windows of a recording together, whose score is the mean of theirs.
Finding anomalies_of(const Scored& scored) {
  struct Windows {
    double errors = 0, count = 0;
    bool is_anomaly = false;
  };
  std::map<double, Windows> recordings;
  const std::vector<double> errors = scored.column(kError), classes = scored.column(kClass),
                            numbers = scored.column(kRecording);
  // All examples of the data have one, or none has.
  const bool has_classes = classes.front() >= 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    Windows& one = recordings[numbers[i] < 0 ? static_cast<double>(i) : numbers[i]];
    one.errors += errors[i];
    ++one.count;
    one.is_anomaly = one.is_anomaly || classes[i] > 0;
  }
  Finding found;
  for (const auto& [number, one] : recordings) {
    found.scores.push_back(one.errors / one.count);
    if (has_classes) found.labels.push_back(one.is_anomaly ? 1 : 0);
  }
  return found;
}

Evaluation conclude_reconstruction(const Scored& scored) {
  Evaluation result{.examples = std::ssize(scored.scores) / static_cast<std::int64_t>(kAnomalyScores)};
  if (result.examples == 0) return result;
  result.losses = scored.column(kError);
  for (const double error : result.losses) result.loss += error / static_cast<double>(result.examples);
  const Finding& found = result.findings.emplace_back(anomalies_of(scored));
  const auto recordings = std::ssize(found.scores);
  const std::string detail = recordings < result.examples ? counted(recordings, "recording") : std::string();
  if (found.has_both() && !std::isnan(result.loss)) {
    result.measures.push_back({&kAnomalyMeasures[0], roc_auc(found.scores, found.labels), detail});
    result.measures.push_back({&kAnomalyMeasures[1], partial_roc_auc(found.scores, found.labels, kFewFalseAlarms)});
  }
  result.measures.push_back({&kAnomalyMeasures[2], result.loss});
  return result;
}

/// Whether there are normal examples and others.
bool has_anomalies(const datasets::Dataset& part) {
  if (!part.has_classes()) return false;
  const auto [least, most] = std::ranges::minmax(part.labels.values<std::int32_t>());
  return least == 0 && most > 0;
}

}  // namespace

const Task& reconstruction() {
  static constexpr Task kTask{
      .name = "reconstruct",
      .outputs = "numbers",
      .finding = "anomaly",
      .answers_numbers = true,
      .measures = kAnomalyMeasures,
      .outputs_for = [](const datasets::Dataset& data) { return data.example_shape().elements(); },
      .add_loss = add_reconstruction_loss,
      .target_of = [](const datasets::Examples&) { return Tensor(); },
      .scores = [](std::int64_t) -> std::size_t { return kAnomalyScores; },
      .score = score_reconstruction,
      .conclude = conclude_reconstruction,
      .decides = [](const datasets::Dataset& part) -> const MeasureKind& {
        return kAnomalyMeasures[has_anomalies(part) ? 0 : 2];
      }};
  return kTask;
}

}  // namespace miniqat::training
