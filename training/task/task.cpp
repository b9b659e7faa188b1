#include "training/task/task.h"

#include <algorithm>
#include <array>

#include "core/text/error.h"
#include "core/text/suggest.h"
#include "layers/layers.h"

namespace miniqat::training {

void LossOptions::require_no_classes() const {
  if (label_smoothing != 0) fail("`label_smoothing` is for classes, which the data do not have");
  if (!class_weights.empty()) fail("`class_weights` are for classes, which the data do not have");
}

void LossOptions::require_no_numbers() const {
  if (huber != 0) fail("`huber` is for numbers to predict or to reconstruct, which the task does not have");
}

Output add_loss_of_numbers(Graph& graph, const Output& numbers, const Output& targets, const LossOptions& options) {
  options.require_no_classes();
  const std::string name = graph.unique_name("loss");
  return options.huber == 0 ? layers::mean_squared_error(graph, numbers, targets, name)
                            : layers::huber(graph, numbers, targets, name, {.delta = options.huber});
}

std::vector<double> Scored::column(std::size_t k) const {
  std::vector<double> values;
  for (std::size_t i = k; i < scores.size(); i += each) values.push_back(scores[i]);
  return values;
}

void score_targets(std::span<const float> output, const datasets::Examples& batch, std::int64_t row,
                   std::span<double> scores) {
  const std::size_t outputs = output.size();
  const auto targets = batch.targets.values<float>().subspan(static_cast<std::size_t>(row) * outputs, outputs);
  std::ranges::copy(output, scores.begin());
  std::ranges::copy(targets, scores.subspan(outputs).begin());
}

std::span<const Task* const> tasks() {
  static const std::array<const Task*, 4> kTasks = {&classification(), &regression(), &reconstruction(), &multilabel()};
  return kTasks;
}

const Task& find_task(const std::string& name) {
  std::vector<std::string> names;
  for (const Task* task : tasks()) {
    if (name == task->name) return *task;
    names.emplace_back(task->name);
  }
  fail(unknown_name("task", name, names));
}

const Task& task_for(const datasets::Dataset& data) {
  const auto is_normal = [](std::int32_t label) { return label == 0; };
  const bool all_normal = data.recordings.defined() && data.has_classes() &&
                          std::ranges::all_of(data.labels.values<std::int32_t>(), is_normal);
  if (data.has_classes() && !all_normal) return classification();
  if (all_normal || !data.targets.defined()) return reconstruction();
  const bool are_flags = std::ranges::all_of(data.targets.values<float>(), [](float y) { return y == 0 || y == 1; });
  return are_flags && !data.target_standard ? multilabel() : regression();
}

std::string target_name(const datasets::Dataset& data, std::size_t k) {
  return data.target_names.empty() ? std::to_string(k) : data.target_names.at(k);
}

void Tally::add(std::span<const float> outputs, const datasets::Examples& batch, std::int64_t valid) {
  const auto each = static_cast<std::size_t>(outputs_);
  for (std::int64_t row = 0; row < valid; ++row) {
    scores_.resize(scores_.size() + each_);
    task_.score(outputs.subspan(static_cast<std::size_t>(row) * each, each), batch, row,
                std::span(scores_).last(each_));
  }
}

Evaluation Tally::conclude(const datasets::Dataset& data) const {
  return task_.conclude({.scores = scores_, .each = each_, .outputs = outputs_, .units = data.target_standard.get()});
}

}  // namespace miniqat::training
