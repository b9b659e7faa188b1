#include "training/train/trainer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/files/files.h"
#include "core/kernels/onednn.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "datasets/class_counts.h"
#include "datasets/known_datasets.h"
#include "datasets/loader.h"
#include "training/evaluate/part_results.h"
#include "training/run/data_of_run.h"
#include "training/run/init_checkpoint.h"
#include "training/run/integer_source.h"
#include "training/run/own_copies.h"
#include "training/run/run_source.h"
#include "training/run/same_data.h"
#include "training/train/layer_arithmetic.h"
#include "training/train/range_start.h"
#include "training/train/run_life.h"
#include "training/train/shared_state.h"
#include "training/train/training_task.h"
#include "training/train/watches.h"

namespace miniqat::training {
namespace {

/// One training run from its first file to its summary.
class Trainer {
 public:
  Trainer(TrainingTask& task, const RunDirectory& run, const TrainExtras& extras, RunObserver& observer)
      : run_(run),
        extras_(extras),
        observer_(observer),
        task_(task),
        evaluations_(task, run.path().string(), observer),
        life_(task, run, extras, observer, evaluations_),
        ranges_(task, observer) {}

  void run() {
    if (wants_to_stop()) return;
    require_same_task(task_);
    life_.begin();
    ranges_.keep(life_.restored());
    observer_.on_begin(task_, run_);
    say_what_decides();
    judge_imported_weights();
    warn_of_files(task_.data, observer_);
    warn_of_empty_class();
    say_what_keeps_it_from_integers();
    advise_channels();
    advise_float32();
    if (extras_.profile != nullptr)
      if (const std::string share = share_of_integers(task_); !share.empty()) observer_.say(share);
    if (life_.is_complete()) {
      observer_.say(concat("The run in ", printable(run_.path().string()), " is complete: ", task_.session.step(),
                           " of ", counted(task_.total_steps, "step"), " done."));
      return;
    }
    if (extras_.profile != nullptr) task_.session.set_profile(extras_.profile);
    try {
      try {
        if (life_.judges_without_a_step()) ranges_.before_judging();
        life_.start();
        train_steps();
      } catch (const Interruption&) {
        // The step or the evaluation that was under way has changed nothing.
      }
      life_.finish();
    } catch (const NonFiniteLoss& error) {
      end_for_good(error);
    } catch (const NonFiniteValue& error) {
      end_for_good(error);
    } catch (const Error& error) {
      if (!is_there(run_.checkpoint())) throw;
      fail(error.what(), "; go on from the checkpoint of step ", life_.saved_step(), " with: ", way_on(run_, extras_));
    }
  }

 private:
  /// Gives the same answer on all ranks: whoever wants it is heard with the next step.
  bool wants_to_stop() {
    if (observer_.wants_to_stop()) task_.ranks.ask_to_stop();
    return task_.ranks.stop_asked();
  }

  void say_what_decides() {
    if (extras_.is_stage || extras_.resume) return;
    if (const std::string note = note_on_anomalies(task_.data, *task_.training.task); !note.empty())
      observer_.say(note);
    if (!task_.data.validation) return;
    observer_.say(validation_counts(task_.data));
    if (const std::string note = note_on_small_classes(task_.data); !note.empty()) observer_.say(note);
  }

  /// Warns of a bad start: a network that some other program has trained on pixels other than these.
  void judge_imported_weights() {
    if (!task_.ranks.leads()) return;
    const TrainSettings& settings = task_.settings;
    const bool has_weights = is_onnx_file(settings.model) && settings.init_checkpoint.empty();
    const std::string& from = has_weights ? settings.model : settings.init_checkpoint;
    if (extras_.is_stage || extras_.resume || from.empty() || run_of_variables(from)) return;
    constexpr std::int64_t kPictures = 512;
    Classifier network = make_classifier(classifier_options(settings), task_.data.train);
    // The ranges of its quantizers come with the first batches.
    if (!quantize::quantization_of(network.graph).is_float()) return;
    Session session(network.graph);
    start_from(from, session, settings.output);
    const datasets::Dataset some = datasets::drawn_examples(task_.data.train, kPictures, 1);
    const std::string warning =
        warning_before_training(evaluate(session, network, some), some, printable(settings.model), settings.dataset);
    if (!warning.empty()) observer_.warn(warning);
  }

  /// Before the steps that would be in vain.
  void say_what_keeps_it_from_integers() {
    if (task_.quantization.is_float() || extras_.is_stage || extras_.resume) return;
    const std::string why = why_never_integers(task_.evaluation.graph, *task_.evaluation.task,
                                               task_.session.variables(), grid_of(task_.data.test));
    if (!why.empty()) observer_.say(concat("note: the network will not become integers: ", why));
  }

  /// docs/low-bits.md has the measurements.
  void advise_channels() {
    if (task_.quantization.per_channel || extras_.resume || !task_.has_few_bits_behind_batch_norms()) return;
    observer_.say(
        "note: weights of 4 bits and fewer in a network with batch norms: --per-channel, a range for each channel, often gains much accuracy");
  }

  void advise_float32() {
    const TrainSettings& settings = task_.settings;
    const bool computes = settings.compute != FactorType::kFloat32;
    const bool rounds = !settings.float_only && settings.gradients == GradientType::kBfloat16;
    if (extras_.resume || !(computes || rounds) || onednn::has_fast_bfloat16()) return;
    observer_.say(concat(
        "note: ", computes ? "--compute" : "--gradients",
        " bfloat16 is slower than float32 on this processor: Intel's without AMX multiply half as many in a cycle"));
  }

  /// Labels that begin with 1, say.
  void warn_of_empty_class() {
    if (!datasets::is_path(task_.settings.dataset) || task_.training.task != &classification()) return;
    warn_of_empty_class(task_.data.train, "training");
    warn_of_empty_class(task_.data.test, "test");
  }

  void warn_of_empty_class(const datasets::Dataset& part, const char* title) {
    const std::vector<std::int64_t> counts = datasets::class_counts(part);
    std::vector<std::string> empty;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] == 0) empty.push_back(part.class_names.empty() ? std::to_string(i) : part.class_names[i]);
    if (!empty.empty())
      observer_.warn(concat("note: no ", title, " ", part.noun(), " has the label ", shortened(joined(empty, " or ")),
                            ", ", empty.size(), " of ", counted(counts.size(), "class")));
  }

  void train_steps() {
    Session& session = task_.session;
    const std::int64_t last = std::min(task_.total_steps, extras_.stop_at.value_or(task_.total_steps));
    if (session.step() >= last) return;
    const std::unique_ptr<datasets::Loader> loader = make_loader();
    ChanceWatch chance(task_, observer_);
    CoreWatch cores(observer_);
    StateComparison comparison(session, task_.ranks);
    const std::vector<StepHook*> hooks = {&chance, &cores, &comparison, &ranges_, &evaluations_, &life_};
    for (bool stops = wants_to_stop(); session.step() < last && !stops;) {
      for (StepHook* hook : hooks) hook->before_step();
      const datasets::Batch& batch = next_batch(*loader);
      const float loss = session.train_step(task_.ends.loss, *task_.optimizer, task_.feeds_of(batch));
      observer_.on_step(life_.report_of_step(loss));
      stops = wants_to_stop();
      const std::int64_t step = session.step();
      const TrainedStep taken{.step = step,
                              .loss = loss,
                              .ends_epoch = step % task_.steps_per_epoch == 0,
                              .is_last = step == last,
                              .stops = stops};
      for (StepHook* hook : hooks) hook->note_step(taken);
      for (StepHook* hook : hooks) hook->after_step(taken);
    }
  }

  /// Loads this process's part of the batches that are left.
  std::unique_ptr<datasets::Loader> make_loader() const {
    const TrainSettings& settings = task_.settings;
    const std::int64_t slice = settings.slice_size();
    return std::make_unique<datasets::Loader>(
        task_.data.train, datasets::Loader::Options{.batch_size = settings.batch_size,
                                                    .first_row = slice * task_.ranks.range().first,
                                                    .rows = slice * task_.ranks.range().count,
                                                    .shuffle = !settings.no_shuffle,
                                                    .seed = static_cast<std::uint64_t>(settings.seed),
                                                    .first_batch = task_.session.step(),
                                                    .augment = augmentation(settings)});
  }

  /// The same steps from the checkpoint come to the same, so this does not tell how to go on with them.
  [[noreturn]] void end_for_good(const Error& error) {
    life_.note_failure(error.what());
    throw NonFiniteLoss(concat(error.what(), "; the checkpoint of step ", life_.saved_step(), " stays in ",
                               run_.path().string(), ", from where ", after_non_finite(task_.dampens())));
  }

  const datasets::Batch& next_batch(datasets::Loader& loader) {
    const ProfileScope timed(extras_.profile, ProfilePhase::kLoaderWait, "next batch", "(loader)");
    return loader.next();
  }

  const RunDirectory& run_;
  const TrainExtras& extras_;
  RunObserver& observer_;
  TrainingTask& task_;
  EvaluationWatch evaluations_;
  RunLife life_;
  RangeStart ranges_;
};

/// Where the data decide the task, and with it the ranges, nobody could say it before.
void refuse_ignored_decay(const TrainSettings& settings, const std::vector<std::string>& given) {
  const bool by_task = !settings.float_only && settings.rewrite.ranges == quantize::RangeChoice::kByTask;
  if (by_task && settings.rewrite.bits_config.empty() && std::ranges::count(given, "ema_decay") > 0)
    refuse_ignored("--ema-decay", concat("--ranges by-task and --task ", settings.task, ": it averages nothing"));
}

}  // namespace

void train(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras, RunObserver& observer) {
  // Outside of its steps, too, a run with shards has one thread number, whatever the machine.
  std::optional<ComputeScope> computing;
  if (settings.has_shards()) computing.emplace(static_cast<int>(settings.threads_per_shard));
  // Other ranks would wait for the sums of a step that one has given up: they agree on a stop between two steps.
  std::optional<InterruptionScope> together;
  if (extras.ranks.get().size() > 1) together.emplace(nullptr);
  if (extras.resume) require_still_there(run.path().string(), settings.dataset, false);
  if (!extras.resume && !settings.data) require_no_strange_arrays(settings.dataset, run.path());
  TrainingTask task(read_networks(settings), extras.ranks);
  if (std::string note = note_on_rounding(task); !note.empty()) task.report.remarks.push_back(std::move(note));
  // The calibration knows the data that decide between it and the training.
  if (extras.is_stage && !extras.resume)
    require_same_data(RunDirectory::open(settings.init_checkpoint), settings.dataset, task.data);
  if (!extras.resume) {
    require_as_asked(task.report, settings.rewrite, rewrite_of_trainings(), extras.given, settings.model);
    refuse_ignored_decay(task.settings, extras.given);
  }
  require_roundable(task);
  Trainer(task, run, extras, observer).run();
}

}  // namespace miniqat::training
