#pragma once

#include "training/run_observer.h"

namespace miniqat::training {

/// Warns once when a training has waited a tenth of some seconds for threads of its own that had no core, since other
/// programs use the cores (seconds_without_cores() of core/team.h).
class CoreWatch {
 public:
  /// The observer must stay. `now` and `without_cores` are in seconds, as in after_step().
  CoreWatch(RunObserver& observer, double now, double without_cores)
      : observer_(observer), start_(now), without_cores_(without_cores) {}

  /// The time, and what seconds_without_cores() is in the thread of the training.
  void after_step(double now, double without_cores);

 private:
  RunObserver& observer_;
  double start_;
  double without_cores_;
  bool warned_ = false;
};

}  // namespace miniqat::training
