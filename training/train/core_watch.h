#pragma once

#include <optional>
#include <string>

#include "training/run_observer.h"
#include "training/train/step_hook.h"

namespace miniqat::training {

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
  /// Begins at the time `now`. Both numbers are in seconds, as in look().
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

}  // namespace miniqat::training
