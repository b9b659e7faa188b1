#pragma once

#include <cstdint>

namespace miniqat::training {

struct TrainedStep {
  std::int64_t step = 0;
  /// The loss of the step's batch, in training.
  double loss = 0;
  bool ends_epoch = false;
  /// The last that this process was to take.
  bool is_last = false;
  /// Somebody wants the run to stop after it.
  bool stops = false;
};

/// What a training does between its steps.
class StepHook {
 public:
  virtual ~StepHook() = default;
  virtual void before_step() {}
  virtual void after_step(const TrainedStep&) {}
};

}  // namespace miniqat::training
