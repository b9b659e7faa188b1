#pragma once

#include <cstdint>

#include "training/run_observer.h"
#include "training/train/training_task.h"

namespace miniqat::training {

/// Warns once, at the end of an epoch, when the loss has been no better than that of equal odds for all classes,
/// ln(classes): such a run learns nothing, whatever its length. Looks at the second half of each epoch, so that a bad
/// start does not count, and at no epoch with fewer than 20 steps there.
class ChanceWatch {
 public:
  /// Both must stay.
  ChanceWatch(const TrainingTask& task, RunObserver& observer) : task_(task), observer_(observer) {}

  void after_step(std::int64_t step, double loss);

 private:
  void judge(std::int64_t epoch);

  const TrainingTask& task_;
  RunObserver& observer_;
  double sum_ = 0;
  std::int64_t steps_ = 0;
  bool warned_ = false;
};

}  // namespace miniqat::training
