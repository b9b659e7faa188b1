#include "cli/trainer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/interrupt.h"
#include "cli/memory.h"
#include "cli/progress.h"
#include "cli/run_life.h"
#include "cli/run_source.h"
#include "cli/training_task.h"
#include "core/counted.h"
#include "core/engine/profile.h"
#include "core/engine/profile_report.h"
#include "core/files.h"
#include "core/parallel.h"
#include "core/quote.h"
#include "datasets/loader.h"
#include "models/models.h"
#include "quantize/quantization.h"

namespace miniqat::cli {
namespace {

/// One training run from its settings to its summary.
class Trainer {
 public:
  Trainer(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras)
      : run_(run), extras_(extras), task_(settings), life_(task_, run, extras) {}

  void run() {
    InterruptGuard::check();
    life_.begin();
    describe_run();
    if (life_.is_complete()) {
      std::printf("The run in %s is complete: %ld of %s done.\n", printable(run_.path().string()).c_str(),
                  static_cast<long>(task_.session.step()), counted(task_.total_steps, "step").c_str());
      return;
    }
    Progress progress(task_.session.step(), task_.total_steps, task_.settings.batch_size,
                      std::max<std::int64_t>(task_.steps_per_epoch / 4, 1));
    if (extras_.profile) task_.session.set_profile(&profile_.emplace());
    try {
      life_.catch_up(progress);
      train_steps(progress);
      life_.finish(progress);
    } catch (const NonFiniteLoss& error) {
      life_.note_failure(error.what());
      throw NonFiniteLoss(concat(error.what(), "; the checkpoint of step ", life_.saved_step(), " stays in ",
                                 run_.path().string(), ", from where ", kAfterNonFinite));
    } catch (const Error& error) {
      std::error_code failure;
      if (!std::filesystem::exists(run_.checkpoint(), failure)) throw;
      fail(error.what(), "; go on from the checkpoint of step ", life_.saved_step(),
           " with: miniqat train --resume --out ", run_.path().string());
    }
    if (profile_) report_profile();
    InterruptGuard::check();
  }

 private:
  void describe_run() const {
    // Folding may leave a second copy of each layer in the training graph, for the statistics.
    const models::ModelSize size = models::size_of(task_.evaluation.graph, task_.settings.batch_size);
    const std::string quantizers =
        task_.quantization.is_float() ? "" : concat(", ", counted(task_.quantization.quantizers, "quantizer"));
    std::printf("%s on %s, %s: %ld parameters, %ld multiply-adds a picture%s\n",
                printable(task_.settings.model).c_str(), task_.settings.dataset.c_str(),
                task_.quantization.label().c_str(), static_cast<long>(size.parameters),
                static_cast<long>(size.multiply_adds), quantizers.c_str());
    const bool crowded = task_.settings.threads > available_cores();
    std::printf("%ld training%s and %ld test pictures, %s of %ld, %s%s, run directory %s\n",
                static_cast<long>(task_.data.train.size()), augmentation(task_.settings).none() ? "" : " (crop-flip)",
                static_cast<long>(task_.data.test.size()), counted(task_.total_steps, "step").c_str(),
                static_cast<long>(task_.settings.batch_size), counted(task_.settings.threads, "thread").c_str(),
                crowded ? concat(" (slow: there are ", available_cores(), " cores)").c_str() : "",
                printable(run_.path().string()).c_str());
    if (task_.session.step() > 0) std::printf("going on after step %ld\n", static_cast<long>(task_.session.step()));
    const bool whole_report = extras_.verbose && !task_.settings.float_only;
    std::printf("%s", (whole_report ? task_.report.text() : task_.report.notes()).c_str());
    std::fflush(stdout);
  }

  void train_steps(Progress& progress) {
    if (task_.session.step() >= task_.total_steps) return;
    datasets::Loader loader(task_.data.train, {.batch_size = task_.settings.batch_size,
                                               .shuffle = !task_.settings.no_shuffle,
                                               .seed = static_cast<std::uint64_t>(task_.settings.seed),
                                               .first_batch = task_.session.step(),
                                               .augment = augmentation(task_.settings)});
    const std::int64_t last = std::min(task_.total_steps, extras_.stop_at.value_or(task_.total_steps));
    while (task_.session.step() < last && !InterruptGuard::requested()) {
      const datasets::Batch& batch = next_batch(loader);
      const float loss =
          task_.session.train_step(task_.ends.loss, *task_.optimizer,
                                   {{task_.training.images, batch.images}, {task_.ends.labels, batch.labels}});
      const std::int64_t step = task_.session.step();
      progress.step(step, loss, task_.epochs_done());
      if (extras_.verbose) describe_plan(progress);
      life_.after_step(progress, loss, step < last);
    }
  }

  const datasets::Batch& next_batch(datasets::Loader& loader) {
    const ProfileScope timed(profile_ ? &*profile_ : nullptr, ProfilePhase::kLoaderWait, "next batch", "(loader)");
    return loader.next();
  }

  void report_profile() const {
    const std::filesystem::path path =
        extras_.profile->empty() ? run_.trace() : std::filesystem::path(*extras_.profile);
    std::printf("\n%s", profile_table(*profile_).c_str());
    write_file_atomically(path, profile_trace(*profile_));
    std::printf("the last %s as a Chrome trace (chrome://tracing, ui.perfetto.dev): %s\n",
                counted(profile_->kept().size(), "step").c_str(), printable(path.string()).c_str());
  }

  /// At the first step and whenever a delay has passed, since another plan runs from then on.
  void describe_plan(Progress& progress) {
    const PassedDelays passed = task_.delays.passed(task_.session.quantization_step());
    if (described_ == passed) return;
    described_ = passed;
    progress.line(concat("plan from step ", task_.session.step(), ", ", phase_text(passed), ": ",
                         memory_text(task_.session.plan_memory())));
  }

  std::string phase_text(const PassedDelays& passed) const {
    if (task_.quantization.is_float()) return "float";
    const bool waits = passed.quantization == 0 && !task_.delays.quantization.empty();
    const char* quantizing = waits ? "ranges observed, not yet quantizing" : "quantizing";
    return concat(quantizing, passed.freeze > 0 ? ", batch norms frozen" : "");
  }

  const RunDirectory& run_;
  const TrainExtras& extras_;
  TrainingTask task_;
  RunLife life_;
  std::optional<Profile> profile_;
  /// Of the plan that `--verbose` has described last.
  std::optional<PassedDelays> described_;
};

}  // namespace

void train(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras) {
  Trainer(settings, run, extras).run();
}

}  // namespace miniqat::cli
