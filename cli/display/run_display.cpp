#include "cli/display/run_display.h"

#include <algorithm>
#include <cstdio>

#include "cli/notes.h"
#include "cli/process.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "models/models.h"
#include "training/figures.h"
#include "training/run/run_directory.h"
#include "training/train/run_life.h"
#include "training/train/training_task.h"

namespace miniqat::cli {

using training::StepReport;
using training::TrainingTask;

namespace {

std::string bar_of(const training::StepReport& report, std::size_t width) {
  const auto total = static_cast<std::size_t>(std::max<std::int64_t>(report.total_steps, 1));
  const std::size_t filled = width * std::min(static_cast<std::size_t>(report.step), total) / total;
  return concat("[", std::string(filled, '#'), std::string(width - filled, '.'), "] ");
}

}  // namespace

bool StepLines::is_due(std::int64_t step, std::int64_t total, std::int64_t steps_per_epoch, Time now) {
  const std::int64_t quarter = std::max<std::int64_t>((steps_per_epoch + 3) / 4, 1);
  const bool too_soon = last_ && now - *last_ < std::chrono::seconds(1);
  if (step != total && (step % quarter != 0 || too_soon)) return false;
  last_ = now;
  return true;
}

std::string progress_text(const training::StepReport& report, std::size_t columns, const std::string& noun) {
  constexpr std::size_t kWidestBar = 24, kNarrowestBar = 10, kAroundBar = 3;
  const std::string steps = concat(report.step, "/", report.total_steps);
  const std::string epoch = formatted("  epoch %.2f", report.epoch), loss = formatted("  loss %.4f", report.loss);
  const std::string speed = formatted("  %.0f %ss/s", report.images_per_second, noun.c_str());
  const std::string left = concat("  ", training::clock_text(report.seconds_left), " left");
  for (const std::string& text :
       {concat(steps, epoch, loss, speed, left), concat(steps, epoch, loss, left), concat(steps, loss, left)})
    if (text.size() + kAroundBar + kNarrowestBar <= columns)
      return bar_of(report, std::min(columns - text.size() - kAroundBar, kWidestBar)) + text;
  const std::string without_bar = concat(steps, loss, left);
  return without_bar.size() <= columns ? without_bar : concat(steps, left);
}

void BatchDisplay::say(const std::string& text) {
  line_.clear();
  std::printf("%s\n", with_flags(text).c_str());
  std::fflush(stdout);
}

void BatchDisplay::warn(const std::string& text) { print_note(text); }

void BatchDisplay::on_batch(std::int64_t done, std::int64_t total) {
  const std::string text = concat("batch ", done, "/", total);
  line_.show(text);
  const bool quarter = done % std::max<std::int64_t>((total + 3) / 4, 1) == 0;
  if (done == total || (!line_.on_terminal() && quarter)) say(text);
}

bool BatchDisplay::wants_to_stop() { return InterruptGuard::requested(); }

void TrainDisplay::on_begin(const TrainingTask& task, const training::RunDirectory& run) {
  task_ = &task;
  // Folding may leave a second copy of each layer in the training graph, for the statistics.
  const models::ModelSize size = models::size_of(task.evaluation.graph, task.settings.slice_size());
  const std::string quantizers =
      task.quantization.is_float() ? "" : concat(", ", counted(task.quantization.quantizers, "quantizer"));
  const datasets::Dataset& data = task.data.train;
  std::printf("%s on %s, %s: %ld parameters, %ld multiply-adds %s %s%s\n", printable(task.settings.model).c_str(),
              task.settings.dataset.c_str(), task.quantization.label().c_str(), static_cast<long>(size.parameters),
              static_cast<long>(size.multiply_adds), data.has_pictures() ? "a" : "an", data.noun(), quantizers.c_str());
  // Classes are what everybody expects of pictures.
  const training::Task& learned = *task.training.task;
  if (const bool are_classes = &learned == &training::classification(); !are_classes || !data.has_pictures())
    std::printf("task %s: from %s to %s, measured by %s\n", learned.name, data.example_shape().str().c_str(),
                counted(task.training.outputs(), are_classes ? "class" : "number").c_str(),
                learned.decides_on(task.data.test).name);
  const bool crowded = task.settings.threads > available_cores();
  const std::string validation =
      task.data.validation ? concat(", ", task.data.validation->size(), " validation") : std::string();
  const datasets::AugmentOptions augment = training::augmentation(task.settings);
  const std::string augmented =
      augment.none() ? std::string()
                     : concat(" (", augment.vary_sounds ? "varied" : training::resolved_augment(task.settings), ")");
  const std::string shards = task.settings.has_shards() ? concat(" in ", task.settings.shards, " shards of ",
                                                                 counted(task.settings.threads_per_shard, "thread"))
                                                        : std::string();
  std::printf("%ld training%s%s and %ld test %ss, %s of %ld%s, %s%s, run directory %s\n",
              static_cast<long>(task.data.train.size()), augmented.c_str(), validation.c_str(),
              static_cast<long>(task.data.test.size()), data.noun(), counted(task.total_steps, "step").c_str(),
              static_cast<long>(task.settings.batch_size), shards.c_str(),
              counted(task.settings.threads, "thread").c_str(),
              crowded ? concat(" (slow: there are ", available_cores(), " cores)").c_str() : "",
              printable(run.path().string()).c_str());
  if (task.session.step() > 0) std::printf("going on after step %ld\n", static_cast<long>(task.session.step()));
  const bool whole_report = verbose_ && !task.settings.float_only;
  std::printf("%s", with_flags(whole_report ? task.report.text() : task.report.notes()).c_str());
  std::fflush(stdout);
}

void TrainDisplay::on_step(const StepReport& report) {
  show_step(report);
  if (verbose_) describe_plan(report.step);
}

void TrainDisplay::show_step(const StepReport& report) {
  const auto step = static_cast<long>(report.step), total = static_cast<long>(report.total_steps);
  if (!bar_.on_terminal()) {
    if (lines_.is_due(step, total, task_->steps_per_epoch, Clock::now()))
      std::printf("step %6ld/%ld  epoch %5.2f  loss %.4f  %.0f %ss/s  %s left\n", step, total, report.epoch,
                  report.loss, report.images_per_second, noun(), training::clock_text(report.seconds_left).c_str());
    std::fflush(stdout);
    return;
  }
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && step != total) return;
  drawn_ = now;
  bar_.show(progress_text(report, bar_.columns(), noun()));
}

const char* TrainDisplay::noun() const { return task_->data.train.has_pictures() ? "image" : "example"; }

void TrainDisplay::say(const std::string& text) {
  bar_.clear();
  std::printf("%s\n", with_flags(text).c_str());
  std::fflush(stdout);
}

void TrainDisplay::warn(const std::string& text) {
  // `quantize` reads its data in each of its stages.
  if (text.starts_with("note: ") && !noted_.insert(text).second) return;
  bar_.clear();
  print_note(text);
}

bool TrainDisplay::wants_to_stop() { return InterruptGuard::requested(); }

/// At the first step and whenever a delay has passed, since another plan runs from then on.
void TrainDisplay::describe_plan(std::int64_t step) {
  const quantize::PassedDelays passed = task_->delays.passed(task_->session.quantization_step());
  if (described_ == passed) return;
  described_ = passed;
  say(concat("plan from step ", step, ", ", phase_text(passed), ": ",
             training::memory_text(task_->session.plan_memory())));
}

std::string TrainDisplay::phase_text(const quantize::PassedDelays& passed) const {
  if (task_->quantization.is_float()) return "float";
  const bool waits = passed.quantization == 0 && !task_->delays.quantization.empty();
  const char* quantizing = waits ? "ranges observed, not yet quantizing" : "quantizing";
  return concat(quantizing, passed.freeze > 0 ? ", batch norms frozen" : "");
}

}  // namespace miniqat::cli
