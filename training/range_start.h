#pragma once

#include <cstdint>

#include "training/run_observer.h"
#include "training/training_task.h"

namespace miniqat::training {

/// Where learned ranges start: at least squares (quantize::Calibrator), from a few batches, with the weights of that
/// moment. That is before the first step, unless a checkpoint gave the run its ranges; with quant_delay when
/// quantization begins, and before that at the end of each epoch, so that its accuracy and its checkpoint have ranges.
/// Decides by the session alone: a resumed run does the same.
class RangeStart {
 public:
  /// Both must stay.
  RangeStart(TrainingTask& task, RunObserver& observer);

  void before_step();
  /// Before the checkpoint of that moment is written.
  void at_epoch_end();

 private:
  bool is_at_initial_values() const;
  /// The next step is the first that quantizes.
  bool begins_now() const;
  void calibrate();

  TrainingTask& task_;
  RunObserver& observer_;
  int learned_ = 0;
  /// The step counter from which on steps quantize.
  std::int64_t delay_ = 0;
};

}  // namespace miniqat::training
