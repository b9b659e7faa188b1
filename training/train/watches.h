#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "training/evaluate/evaluator.h"
#include "training/run_observer.h"
#include "training/train/training_task.h"

namespace miniqat::training {

/// Warns once, at the end of an epoch, when the loss has been no better than that of equal odds for all classes,
/// ln(classes): such a run learns nothing, whatever its length. Looks at the second half of each epoch, so that a bad
/// start does not count. Of epochs with fewer than 20 steps there it takes as many together as have them, as of one
/// long epoch.
class ChanceWatch : public StepHook {
 public:
  /// `task` and `observer` must stay.
  ChanceWatch(const TrainingTask& task, RunObserver& observer);

  void after_step(const TrainedStep& step) override;

 private:
  void judge(std::int64_t last_epoch);

  const TrainingTask& task_;
  RunObserver& observer_;
  /// The number of epochs that are judged together.
  const std::int64_t epochs_;
  double sum_ = 0;
  std::int64_t steps_ = 0;
  bool warned_ = false;
};

/// Where a run computes.
struct CoreLimits {
  int threads = 1;
  /// Cores that the process may use.
  int cores = 1;
  /// core/threads/cpu_quota.h
  std::optional<double> quota;

  /// The limits of this process, and its thread_count().
  static CoreLimits now();
};

/// Warns once when threads of a training had no core for a tenth of some seconds (seconds_without_cores() of
/// core/team/team.h), and names the cause: a CPU quota, or other programs. If there are more
/// threads than cores, or than the quota lets run, it warns without such a measurement: then threads wait for one
/// another inside oneDNN, too, which nobody measures.
class CoreWatch : public StepHook {
 public:
  /// The observer must stay. Begins now, in the thread of the training.
  explicit CoreWatch(RunObserver& observer);
  /// Begins at another time. Times are in seconds, as in look().
  CoreWatch(RunObserver& observer, double now, double without_cores, const CoreLimits& limits = CoreLimits::now())
      : observer_(observer), start_(now), without_cores_(without_cores), limits_(limits) {}

  void after_step(const TrainedStep&) override;
  /// The time, and what seconds_without_cores() is in the thread of the training.
  void look(double now, double without_cores);

 private:
  RunObserver& observer_;
  double start_;
  double without_cores_;
  CoreLimits limits_;
  bool warned_ = false;
};

/// Looks at what an evaluation says beyond its accuracy, and warns where that is not what it looks like.
class EvaluationWatch : public StepHook {
 public:
  /// All must stay. `run`: the run directory, for advice.
  EvaluationWatch(TrainingTask& task, std::string run, RunObserver& observer);

  void note_step(const TrainedStep& step) override;
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
