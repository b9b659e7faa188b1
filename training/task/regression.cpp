#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/text/error.h"
#include "layers/layers.h"
#include "training/task/metrics.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

constexpr MeasureKind kNumberMeasures[] = {
    {.name = "R^2", .brief = "R^2", .key = "r2"},
    {.name = "mean absolute error", .brief = "MAE", .key = "mae", .less_is_better = true},
    {.name = "mean squared error", .brief = "MSE", .key = "mse", .less_is_better = true}};

std::int64_t numbers_of_data(const datasets::Dataset& data) {
  if (!data.targets.defined())
    fail(
        "data set ", data.name, " has ", data.has_classes() ? "classes, " : "", "no numbers to predict",
        data.has_classes()
            ? "; `task` classify tells classes apart, and of arrays and tables `answers` targets makes whole numbers of them"
            : "");
  return data.targets.shape()[1];
}

TrainingEnds add_number_loss(Graph& graph, const Output&, const Output& numbers, const LossOptions& options) {
  const Output targets = layers::placeholder(graph, graph.unique_name("targets"), numbers.shape());
  return {targets, add_loss_of_numbers(graph, numbers, targets, options)};
}

Evaluation conclude_numbers(const Scored& scored) {
  const auto outputs = static_cast<std::size_t>(scored.outputs);
  Evaluation result{.examples = std::ssize(scored.scores) / (2 * scored.outputs)};
  if (result.examples == 0) return result;
  result.losses.resize(static_cast<std::size_t>(result.examples));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  double explained = 0, absolute = 0, squared = 0;
  int with_variance = 0;
  for (std::size_t k = 0; k < outputs; ++k) {
    const std::vector<double> predictions = scored.column(k), targets = scored.column(outputs + k);
    const double unit = scored.units == nullptr ? 1 : scored.units->deviation[k];
    const bool has_nan = std::ranges::any_of(predictions, [](double p) { return std::isnan(p); });
    const double error = has_nan ? kNaN : mean_squared_error(predictions, targets);
    result.loss += error / static_cast<double>(outputs);
    for (std::size_t i = 0; i < targets.size(); ++i)
      result.losses[i] += (predictions[i] - targets[i]) * (predictions[i] - targets[i]) / static_cast<double>(outputs);
    const TargetErrors& one = result.by_target.emplace_back(
        TargetErrors{.r2 = has_nan ? kNaN : r_squared(predictions, targets),
                     .mean_absolute = (has_nan ? kNaN : mean_absolute_error(predictions, targets)) * unit,
                     .mean_squared = error * unit * unit});
    squared += one.mean_squared / static_cast<double>(outputs);
    absolute += one.mean_absolute / static_cast<double>(outputs);
    if (one.r2) {
      explained += *one.r2;
      ++with_variance;
    }
  }
  if (with_variance > 0) result.measures.push_back({&kNumberMeasures[0], explained / with_variance});
  const bool mixes_units = outputs > 1 && with_variance > 0;
  result.measures.push_back({.kind = &kNumberMeasures[1], .value = absolute, .mixes_units = mixes_units});
  result.measures.push_back({.kind = &kNumberMeasures[2], .value = squared, .is_quiet = true});
  return result;
}

}  // namespace

const Task& regression() {
  static constexpr Task kTask{.name = "regress",
                              .outputs = "numbers",
                              .answers_numbers = true,
                              .measures = kNumberMeasures,
                              .outputs_for = numbers_of_data,
                              .add_loss = add_number_loss,
                              .target_of = [](const datasets::Examples& batch) { return batch.targets; },
                              .scores = [](std::int64_t outputs) { return 2 * static_cast<std::size_t>(outputs); },
                              .score = score_targets,
                              .conclude = conclude_numbers};
  return kTask;
}

}  // namespace miniqat::training
