#pragma once

#include "core/engine/session.h"
#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/run/run_source.h"

namespace miniqat::training {

/// A run's evaluation graph with its variables, ready to compute.
struct EvaluationSession {
  /// Throws Error where the graph does not take the data set's pictures or tell its classes apart, and what reading it
  /// and restoring the variables throws.
  EvaluationSession(const RunSource& run, const datasets::Dataset& pictures);
  EvaluationSession(const EvaluationSession&) = delete;

  Classifier classifier;
  Session session;
};

}  // namespace miniqat::training
