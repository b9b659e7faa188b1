#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/engine/session.h"
#include "datasets/dataset.h"
#include "integer/model.h"
#include "training/model_source.h"
#include "training/run/run_source.h"
#include "training/task/evaluation.h"
#include "training/task/task.h"

namespace miniqat::training {

/// Given each example of a data set, in order, with the network's outputs for it: its logits, where it tells classes
/// apart.
using OnLogits = std::function<void(std::int64_t index, std::span<const float> logits)>;

/// Runs a network over a whole data set in batches of its own size, and measures what its task measures. A profile gets
/// a step for each batch. Throws Error for data that do not fit the network and its task.
Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits = {}, Profile* profile = nullptr);

/// Runs an integer model over a whole data set. The loss is that of the dequantized outputs. Ties between logits, which
/// are frequent among integers, go to the lower class, as in evaluate(). `on_logits` is given the dequantized ones.
/// Throws Error for data that do not fit the model and the task.
Evaluation evaluate_integers(const integer::Model& model, const Task& task, const datasets::Dataset& dataset,
                             const OnLogits& on_logits = {});

/// What a network says of one example.
struct Prediction {
  /// The class with the highest score; -1 if a logit was NaN, and where the task is none of classes.
  std::int64_t predicted = -1;
  /// One for each class (class_scores()).
  std::vector<double> scores = {};
  /// What the network gives where the task is none of classes; numbers to predict are in the units of the data.
  std::vector<double> outputs = {};

  /// The classes by their scores, the highest first; of equal ones the lower class.
  std::vector<std::int64_t> ranking() const;
};

/// One for each picture, by the run's evaluation graph or, with `integer`, by its integer model. Answers do not matter,
/// and may be unknown. Throws Error for pictures that do not fit the network and, with `integer`, for a run that has no
/// integer model.
std::vector<Prediction> predict(const RunSource& run, const datasets::Dataset& asked, bool integer);

}  // namespace miniqat::training
