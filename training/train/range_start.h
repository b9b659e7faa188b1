#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "training/run_observer.h"
#include "training/train/training_task.h"

namespace miniqat::training {

/// Where learned ranges start: at least squares (quantize::Calibrator), from a few batches, with the weights of that
/// moment. Ranges from another run's checkpoint stay (keep()). The others start before the first step. With quant_delay
/// they start when quantization begins, and before that at each evaluation of the run, so that its accuracy and its
/// checkpoint have ranges. Where the moving statistics of batch norms are far off (they lag behind, or come from other
/// data), ranges of activations start with statistics of the batches, which normalise in training; those of weights
/// follow the moving ones, as the weights do. A range of zeros only, of a checkpoint, too, starts at its initializer:
/// no factor would lead it away from 0. Decides by the session and the names to keep: a resumed run does the same.
class RangeStart : public StepHook {
 public:
  /// `task` and `observer` must stay.
  RangeStart(TrainingTask& task, RunObserver& observer);

  /// The variables that came with a checkpoint; with both ends of a range it stays.
  void keep(std::set<std::string> variables) { kept_ = std::move(variables); }

  /// These two change nothing where an Interruption ends them.
  void before_step() override;
  /// Before the checkpoint of that moment is written.
  void after_step(const TrainedStep& step) override;
  /// For a run that goes on where it is judged first: its accuracy has ranges, even if a signal ended after_step().
  void before_judging();

 private:
  /// The quantizers whose first quantizing step is the next one.
  std::vector<const Node*> beginning_now() const;
  /// The quantizers that have not begun.
  std::vector<const Node*> waiting() const;
  std::vector<const Node*> without_kept(const std::vector<const Node*>& quantizers) const;
  void start_quantizers(const std::vector<const Node*>& quantizers);
  void widen_empty_ranges(const std::vector<const Node*>& quantizers);
  /// What the pictures make of the batch norms' statistics, by name, where the moving ones are far off; else nothing.
  NamedTensors batch_statistics();
  /// Calibrates with these statistics in the place of the moving ones.
  void calibrate(const std::vector<const Node*>& quantizers, const NamedTensors& statistics = {});

  TrainingTask& task_;
  RunObserver& observer_;
  /// The quantizers with learned ranges. Layers of a graph file may have delays of their own.
  std::vector<const Node*> quantizers_;
  std::set<std::string> kept_;
};

}  // namespace miniqat::training
