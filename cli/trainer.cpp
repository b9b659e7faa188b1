#include "cli/trainer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/evaluator.h"
#include "cli/init_checkpoint.h"
#include "cli/interrupt.h"
#include "cli/memory.h"
#include "cli/model_source.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "core/files.h"
#include "core/graph_json.h"
#include "core/parallel.h"
#include "core/plan_selection.h"
#include "core/profile.h"
#include "core/profile_report.h"
#include "core/session.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "models/models.h"
#include "quantize/quantization.h"
#include "quantize/rewrite.h"

namespace miniqat::cli {
namespace {

std::string percent(double fraction) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * fraction);
  return text;
}

/// One training run from its settings to its summary.
class Trainer {
 public:
  Trainer(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras)
      : settings_(settings),
        run_(run),
        extras_(extras),
        data_(datasets::load(settings.dataset, settings.data_dir)),
        training_(make_classifier(source(), data_.train)),
        evaluation_(make_classifier(source(), data_.test)) {
    ends_ = add_loss(training_);
    if (!settings_.float_only) {
      report_ = quantize::create_training_graph(training_.graph, settings_.rewrite);
      require_quantizers();
      quantize::create_eval_graph(evaluation_.graph, settings_.rewrite);
      evaluation_.logits = evaluation_.graph.outputs().front();
    }
    quantization_ = quantize::quantization_of(training_.graph);
    delays_ = Delays(training_.graph);
    const SessionOptions options{.seed = static_cast<std::uint64_t>(settings_.seed)};
    session_.emplace(training_.graph, options);
    test_session_.emplace(evaluation_.graph, options);
    steps_per_epoch_ = data_.train.size() / settings_.batch_size;
    if (steps_per_epoch_ == 0)
      fail("data set ", settings_.dataset, " has ", data_.train.size(), " training pictures, fewer than one batch of ",
           settings_.batch_size);
    total_steps_ = settings_.steps > 0 ? settings_.steps : settings_.epochs * steps_per_epoch_;
    optimizer_ = make_optimizer(settings_, total_steps_);
  }

  void run() {
    const InterruptGuard interrupts;
    begin();
    if (session_->step() >= total_steps_) {
      std::printf("The run in %s is complete: %ld of %ld steps are done.\n", run_.path().c_str(),
                  static_cast<long>(session_->step()), static_cast<long>(total_steps_));
      return;
    }
    Progress progress(session_->step(), total_steps_, settings_.batch_size,
                      std::max<std::int64_t>(steps_per_epoch_ / 4, 1));
    if (extras_.profile) session_->set_profile(&profile_.emplace());
    train_steps(progress);
    finish(progress);
    if (profile_) report_profile();
  }

 private:
  /// Nobody who asks for quantization wants a float run under its name.
  void require_quantizers() const {
    for (const Node* node : training_.graph.nodes())
      if (node->op().quant_delay()) return;
    fail("nothing in ", settings_.model, " was quantized",
         settings_.rewrite.scope.empty() ? "" : concat(", no layer is in scope \"", settings_.rewrite.scope, "\""),
         "; `miniqat rewrite --report` says why, --float trains without quantization");
  }

  bool killed_before_its_first_checkpoint() const {
    return !std::filesystem::exists(run_.checkpoint()) && !std::filesystem::exists(run_.metrics());
  }

  /// A graph file may have been edited since the run began.
  void require_same_graph() const {
    if (read_file(run_.train_graph()) != graph_to_json(training_.graph))
      fail(run_.train_graph().string(), " is not what ", settings_.model,
           " gives now: the model has changed since the run began");
  }

  ClassifierOptions source() const {
    return {.model = settings_.model, .width = settings_.width, .batch_size = settings_.batch_size};
  }

  void begin() {
    if (extras_.resume && !killed_before_its_first_checkpoint()) {
      require_same_graph();
      session_->restore(read_safetensors(run_.checkpoint()), Session::Restore::kExact, run_.checkpoint().string());
      if (extras_.stop_at && *extras_.stop_at <= session_->step())
        throw UsageError(concat("--stop-at ", *extras_.stop_at, ": the run in ", run_.path().string(),
                                " has done step ", session_->step(), " already"));
      run_.forget_metrics_after(session_->step());
    } else {
      std::optional<InitCheckpoint> start;
      if (!settings_.init_checkpoint.empty()) start = start_from(settings_.init_checkpoint, *session_);
      // The settings first: a run that is killed from here on can be resumed.
      run_.make();
      if (!settings_.rewrite.layer_bits.empty())
        write_json(run_.bits(), quantize::layer_bits_to_json(settings_.rewrite.layer_bits));
      write_json(run_.config(), settings_to_json(settings_));
      if (start) {
        std::printf("%s", start->text(extras_.verbose).c_str());
        write_json(run_.init_checkpoint(), start->json());
      }
      write_graph(run_.train_graph(), training_.graph);
      write_graph(run_.eval_graph(), evaluation_.graph);
      save();
    }
    describe_run();
  }

  void describe_run() const {
    // Folding may leave a second copy of each layer in the training graph, for the statistics.
    const models::ModelSize size = models::size_of(evaluation_.graph, settings_.batch_size);
    const std::string quantizers =
        quantization_.is_float() ? "" : concat(", ", quantization_.quantizers, " quantizers");
    std::printf("%s on %s, %s: %ld parameters, %ld multiply-adds a picture%s\n", settings_.model.c_str(),
                settings_.dataset.c_str(), quantization_.label().c_str(), static_cast<long>(size.parameters),
                static_cast<long>(size.multiply_adds), quantizers.c_str());
    const bool crowded = settings_.threads > available_cores();
    std::printf("%ld training%s and %ld test pictures, %ld steps of %ld, %ld thread%s%s, run directory %s\n",
                static_cast<long>(data_.train.size()), augmentation(settings_).none() ? "" : " (crop-flip)",
                static_cast<long>(data_.test.size()), static_cast<long>(total_steps_),
                static_cast<long>(settings_.batch_size), static_cast<long>(settings_.threads),
                settings_.threads == 1 ? "" : "s",
                crowded ? concat(" (slow: there are ", available_cores(), " cores)").c_str() : "", run_.path().c_str());
    if (session_->step() > 0) std::printf("going on after step %ld\n", static_cast<long>(session_->step()));
    if (!settings_.float_only) std::printf("%s", (extras_.verbose ? report_.text() : report_.notes()).c_str());
    std::fflush(stdout);
  }

  void train_steps(Progress& progress) {
    datasets::Loader loader(data_.train, {.batch_size = settings_.batch_size,
                                          .shuffle = !settings_.no_shuffle,
                                          .seed = static_cast<std::uint64_t>(settings_.seed),
                                          .first_batch = session_->step(),
                                          .augment = augmentation(settings_)});
    const std::int64_t last = std::min(total_steps_, extras_.stop_at.value_or(total_steps_));
    while (session_->step() < last && !InterruptGuard::requested()) {
      const datasets::Batch& batch = next_batch(loader);
      last_loss_ = session_->train_step(ends_.loss, *optimizer_,
                                        {{training_.images, batch.images}, {ends_.labels, batch.labels}});
      const std::int64_t step = session_->step();
      progress.step(step, last_loss_, epochs_done());
      if (step % extras_.log_every == 0 || step == total_steps_) log_step(progress);
      if (extras_.verbose) describe_plan(progress);
      if (step % steps_per_epoch_ == 0 && step < last) end_epoch(progress);
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
    std::printf("the last %zu steps as a Chrome trace (chrome://tracing, ui.perfetto.dev): %s\n",
                profile_->kept().size(), path.c_str());
  }

  double epochs_done() const { return static_cast<double>(session_->step()) / static_cast<double>(steps_per_epoch_); }

  void log_step(const Progress& progress) const {
    run_.log({{"step", session_->step()},
              {"epoch", epochs_done()},
              {"loss", last_loss_},
              {"learning_rate", optimizer_->learning_rate(session_->step())},
              {"images_per_second", progress.images_per_second()}});
  }

  /// At the first step and whenever a delay has passed, since another plan runs from then on.
  void describe_plan(Progress& progress) {
    const PassedDelays passed = delays_.passed(session_->quantization_step());
    if (described_ == passed) return;
    described_ = passed;
    progress.line(concat("plan from step ", session_->step(), ", ", phase_text(passed), ": ",
                         memory_text(session_->plan_memory())));
  }

  std::string phase_text(const PassedDelays& passed) const {
    if (delays_.quantization.empty()) return "float";
    const char* quantizing = passed.quantization > 0 ? "quantizing" : "ranges observed, not yet quantizing";
    return concat(quantizing, passed.freeze > 0 ? ", batch norms frozen" : "");
  }

  void save() { write_safetensors(run_.checkpoint(), checked_checkpoint()); }

  /// What is written must be fit to go on with: a variable that blew up in this very step must not replace a good one.
  Safetensors checked_checkpoint() {
    Safetensors content = session_->checkpoint();
    require_finite(content.tensors, "after step " + std::to_string(session_->step()));
    return content;
  }

  Evaluation evaluate_now() {
    test_session_->restore(session_->checkpoint(), Session::Restore::kVariables, "the training graph");
    return evaluate(*test_session_, evaluation_, data_.test);
  }

  void end_epoch(Progress& progress) {
    progress.pause();
    save();
    report_accuracy(progress, evaluate_now());
    progress.resume();
  }

  void report_accuracy(Progress& progress, const Evaluation& test) const {
    char text[96];
    std::snprintf(text, sizeof text, "epoch %5.2f  test accuracy %s  test loss %.4f  train loss %.4f", epochs_done(),
                  percent(test.accuracy()).c_str(), test.loss, last_loss_);
    progress.line(text);
    run_.log({{"step", session_->step()},
              {"epoch", epochs_done()},
              {"test_accuracy", test.accuracy()},
              {"test_loss", test.loss}});
  }

  void finish(Progress& progress) {
    progress.pause();
    save();
    const Evaluation test = evaluate_now();
    report_accuracy(progress, test);
    const bool complete = session_->step() >= total_steps_;
    const Json layer_bits = settings_.float_only || settings_.rewrite.layer_bits.empty()
                                ? Json(nullptr)
                                : quantize::layer_bits_to_json(settings_.rewrite.layer_bits);
    write_json(run_.summary(), {{"model", settings_.model},
                                {"dataset", settings_.dataset},
                                {"quantization", quantization_.label()},
                                {"bits", quantization_.bits()},
                                {"layer_bits", layer_bits},
                                {"steps", session_->step()},
                                {"complete", complete},
                                {"test_accuracy", test.accuracy()},
                                {"test_loss", test.loss},
                                {"train_loss", last_loss_},
                                {"images_per_second", progress.images_per_second()},
                                {"seconds", progress.seconds()},
                                {"peak_memory_mb", peak_megabytes()},
                                {"seed", settings_.seed},
                                {"threads", settings_.threads},
                                {"input_scale", data_.train.scale},
                                {"input_zero_point", data_.train.zero_point}});
    progress.line(complete ? concat("done in ", clock_text(progress.seconds()), ": test accuracy ",
                                    percent(test.accuracy()), " (", test.correct, " of ", test.examples, ")")
                           : concat("stopped after step ", session_->step(), " of ", total_steps_,
                                    "; go on with: miniqat train --resume --out ", run_.path().string()));
  }

  const TrainSettings& settings_;
  const RunDirectory& run_;
  const TrainExtras& extras_;
  datasets::Splits data_;
  Classifier training_;
  Classifier evaluation_;
  TrainingEnds ends_;
  quantize::RewriteReport report_;
  quantize::Quantization quantization_;
  std::optional<Session> session_;
  std::optional<Session> test_session_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Profile> profile_;
  Delays delays_;
  /// Of the plan that `--verbose` has described last.
  std::optional<PassedDelays> described_;
  std::int64_t steps_per_epoch_ = 0;
  std::int64_t total_steps_ = 0;
  float last_loss_ = 0;
};

}  // namespace

void train(const TrainSettings& settings, const RunDirectory& run, const TrainExtras& extras) {
  Trainer(settings, run, extras).run();
}

}  // namespace miniqat::cli
