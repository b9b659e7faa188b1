#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "training/evaluate/part_results.h"
#include "training/run/init_checkpoint.h"
#include "training/run/run_directory.h"
#include "training/run/run_source.h"
#include "training/run_observer.h"
#include "training/settings/train_settings.h"
#include "training/train/train_extras.h"
#include "training/train/training_task.h"
#include "training/train/watches.h"

namespace miniqat::training {

/// "1:05" or "2:03:45".
std::string clock_text(double seconds);

/// How fast a run gets on. Time between pause() and resume() is not training: it counts neither for images/s nor for
/// the time left.
class Pace {
 public:
  /// Steps have `images_per_step` pictures.
  explicit Pace(std::int64_t images_per_step) : images_per_step_(images_per_step) {}

  /// Time begins now; steps first+1 .. total are to come.
  void begin(std::int64_t first, std::int64_t total);
  void step(std::int64_t step) { done_ = step - first_; }
  void pause();
  void resume();
  /// Seconds spent training so far.
  double seconds() const;
  double images_per_second() const;
  double seconds_left() const;

 private:
  using Clock = std::chrono::steady_clock;

  const std::int64_t images_per_step_;
  std::int64_t first_ = 0;
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;
  Clock::time_point started_;
  double before_pause_ = 0;
  bool running_ = false;
};

/// The files of a run from its first moment to its last. In their order, death at any moment loses no more than the
/// steps since the last checkpoint. docs/runs.md tells it in words.
class RunLife : public StepHook {
 public:
  /// All of them must stay; the directory is locked.
  RunLife(TrainingTask& task, const RunDirectory& run, const TrainExtras& extras, RunObserver& observer,
          EvaluationWatch& watch);

  /// A new run's first files, or the checkpoint of the one that goes on; all ranks are where the leader is then. Throws
  /// UsageError, having changed nothing, for a --stop-at that is over or beyond the end, and a run that would become
  /// shorter.
  void begin();
  /// All steps are done, and the summary says so.
  bool is_complete() const;
  /// Whether the network is judged as the checkpoint has it: the run died at the end of an epoch, after the checkpoint,
  /// or behind its last step, without an estimate of statistics yet.
  bool judges_without_a_step() const;
  /// The clock starts; then the accuracy of that epoch.
  void start();
  /// The step that was just taken, in the run.
  StepReport report_of_step(double loss);
  /// The step's line of metrics.jsonl when that is due: before the checkpoint, which knows no step that the metrics do
  /// not.
  void note_step(const TrainedStep& step) override;
  /// Unless it is the last, the checkpoint when that is due, with the accuracy at the end of an epoch. A signal may end
  /// that evaluation with an Interruption, here and in start(): a run that goes on makes up for it.
  void after_step(const TrainedStep& step) override;
  /// Tells whoever reads the run that it meets a NaN or infinity after the last checkpoint, and which. No error: the
  /// caller has a better one.
  void note_failure(const std::string& text) const;
  /// The estimate of the batch norms' statistics, if the run is to make one; the last checkpoint, the accuracy, the
  /// summary. Without what a signal ended; then the summary says that the run is not complete.
  void finish();

  /// The variables that the run took over from another one when it began.
  const std::set<std::string>& restored() const { return restored_; }
  /// The step of the checkpoint on the disk.
  std::int64_t saved_step() const { return saved_step_; }

 private:
  bool killed_before_its_first_checkpoint() const;
  bool judges_at_start() const;
  void share();
  void require_same_graph() const;
  void go_on();
  void restore();
  bool has_its_statistics();
  bool has_shared_statistics();
  void reestimate();
  void write_config() const;
  void write_graphs() const;
  void note_longer(std::int64_t former) const;
  /// Throws UsageError where no step is left for them.
  void note_gradients() const;
  void begin_anew();
  void write_first_files(const std::optional<InitCheckpoint>& start);
  void log_step() const;
  void save();
  void note_saved();
  Evaluation judge();
  void report_accuracy(const Evaluation& judged);
  PartResults final_accuracies(bool& complete);
  void write_summary(const PartResults& accuracies, bool complete) const;
  double images_per_second() const;
  void warn_of_delays() const;

  TrainingTask& task_;
  const RunDirectory& run_;
  const TrainExtras& extras_;
  RunObserver& observer_;
  const SaveInterval save_interval_;
  EvaluationWatch& watch_;
  Pace pace_;
  /// What the processes took that stopped before this one.
  double seconds_before_ = 0;
  /// The loss of the last step; none before the first, unless metrics.jsonl has it.
  std::optional<double> last_loss_;
  /// After the last step: what estimates have replaced, for a longer run.
  NamedTensors trained_;
  std::int64_t saved_step_ = 0;
  SaveInterval::Clock::time_point saved_at_;
  /// What the leader has found.
  std::optional<bool> complete_;
  std::set<std::string> restored_;
  /// The last step whose accuracy metrics.jsonl has.
  std::int64_t reported_step_ = -1;
};

}  // namespace miniqat::training
