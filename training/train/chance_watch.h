#pragma once

#include <cstdint>

#include "training/run_observer.h"
#include "training/train/step_hook.h"
#include "training/train/training_task.h"

namespace miniqat::training {

/// Warns once, at the end of an epoch, when the loss has been no better than that of equal odds for all classes,
/// ln(classes): such a run learns nothing, whatever its length. Looks at the second half of each epoch, so that a bad
/// start does not count. Of epochs with fewer than 20 steps there it takes as many together as have them, as of one
/// long epoch.
class ChanceWatch : public StepHook {
 public:
  /// Both must stay.
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

}  // namespace miniqat::training
