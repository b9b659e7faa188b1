#pragma once

#include <cstdint>
#include <string>

#include "core/text/error.h"

namespace miniqat::quantize {
struct RewriteReport;
}

namespace miniqat::training {

class RunDirectory;
struct TrainingTask;

/// The observer of a calibration, re-estimation or measurement wanted it to stop.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped") {}
};

/// A step that was taken, and how the run gets on.
struct StepReport {
  std::int64_t step = 0;
  /// The steps of the whole run, steps of former processes included.
  std::int64_t total_steps = 0;
  /// Passes over the training set so far.
  double epoch = 0;
  double loss = 0;
  /// The speed of this process, without the time that checkpoints and evaluation took.
  double images_per_second = 0;
  double seconds_left = 0;
};

/// Hears what a training, a calibration, a re-estimation or a measurement has to say, and may end it. Does nothing by
/// itself: whoever has a terminal overrides what belongs there. Called in the thread of the run, between two steps.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// The run's first files are written, or its checkpoint is read: steps follow, unless it was complete before. Both
  /// stay until the run ends.
  virtual void on_begin(const TrainingTask&, const RunDirectory&) {}
  /// The graph of a calibration has its quantizers now.
  virtual void on_rewrite(const quantize::RewriteReport&) {}
  virtual void on_step(const StepReport&) {}
  /// `done` of `total` batches that a calibration or re-estimation looks at.
  virtual void on_batch(std::int64_t /*done*/, std::int64_t /*total*/) {}
  /// `done` of `total` evaluations of a measurement of sensitivity, and what comes next.
  virtual void on_evaluation(std::int64_t /*done*/, std::int64_t /*total*/, const std::string& /*next*/) {}
  /// For people, one line or several, without the end of the last one: the accuracy after an epoch, say.
  virtual void say(const std::string&) {}
  /// A line that begins with "warning: " or "note: ": the run goes on, but may not be what was meant.
  virtual void warn(const std::string&) {}
  /// Asked before every step: a training then writes its checkpoint and returns, the others throw Stopped and write
  /// nothing. Steps and evaluations that are under way end by themselves, or by an Interruption
  /// (core/platform/interruption.h), which leaves the same behind.
  virtual bool wants_to_stop() { return false; }
  void require_no_stop() {
    if (wants_to_stop()) throw Stopped();
  }
};

}  // namespace miniqat::training
