#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "training/evaluate/evaluator.h"
#include "training/run_observer.h"
#include "training/train/training_task.h"

namespace miniqat::training {

/// Looks at what an evaluation says beyond its accuracy, and warns where that is not what it looks like.
class EvaluationWatch {
 public:
  /// All must stay. `run`: the run directory, for advice.
  EvaluationWatch(TrainingTask& task, std::string run, RunObserver& observer);

  /// `loss`: that of a step's batch, in training.
  void after_step(double loss);
  /// `judged`: the evaluation of the judging part. Warns of a network that has one answer for all, each time, and once
  /// of moving statistics that lag: where the loss of some training pictures is more than twice as high in evaluation
  /// as it has been in the last steps. A run that estimates its statistics again at its end is not told, nor one with
  /// class weights, whose losses are others.
  void after_evaluation(const Evaluation& judged);

 private:
  bool may_lag() const;
  double recent_loss() const;
  void look_at_statistics();

  TrainingTask& task_;
  const std::string run_;
  RunObserver& observer_;
  std::deque<double> losses_;
  bool warned_of_statistics_ = false;
};

}  // namespace miniqat::training
