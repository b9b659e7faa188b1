#include "training/train/watches.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/team/team.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/cpu_quota.h"
#include "core/threads/parallel.h"
#include "quantize/fake_quant.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/part_results.h"
#include "training/run/data_of_run.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kFewestSteps = 20;
/// The share of ln(classes) that is above the loss of any network that has learned anything at all.
constexpr double kNothingLearned = 0.98;

/// As the graph has it: a --bits-config has widths of its own, and known ranges (a Sigmoid's) neither move nor need to.
bool observes_few_bits(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    const auto* quantizer = node->as<quantize::FakeQuant>();
    return quantizer && quantizer->bits <= quantize::kFewBits && traits_of(quantizer->range).observes;
  });
}

/// The likeliest cause first.
std::string advice(const TrainingTask& task) {
  const TrainSettings& settings = task.settings;
  if (task.quantization.is_float()) return "try a lower --learning-rate, or --warmup-steps";
  if (observes_few_bits(task.training.graph)) return "with so few bits try --ranges learned (docs/low-bits.md)";
  if (settings.init_checkpoint.empty()) return "try a lower --learning-rate, or --init-checkpoint with a float run";
  return "try a lower --learning-rate";
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kSecondsWatched = 3;
constexpr double kMuch = 0.1;

std::string quota_text(double quota) { return concat("a CPU quota of ", counted(formatted("%.3g", quota), "core")); }

/// What is too small for that many threads, if it is known beforehand; else empty.
std::string crowded_text(const CoreLimits& limits) {
  const int most = std::min(limits.cores, cores_of_quota(limits.quota));
  if (limits.threads <= most) return "";
  return concat("note: ", counted(limits.threads, "thread"), " share ",
                most < limits.cores ? quota_text(*limits.quota) : counted(limits.cores, "core"),
                " and wait for one another; --threads ", most, " for the next run may be faster");
}

constexpr std::size_t kRecentSteps = 50, kFewestLosses = 10;
constexpr std::int64_t kPictures = 1000;
/// Losses near 0 differ by factors without a reason.
constexpr double kFactor = 2, kLeastDifference = 0.1;

bool is_far_above(double evaluated, double trained) {
  return evaluated > kFactor * trained && evaluated > trained + kLeastDifference;
}

}  // namespace

/// With one step less the second half would have too few.
ChanceWatch::ChanceWatch(const TrainingTask& task, RunObserver& observer)
    : task_(task),
      observer_(observer),
      epochs_((2 * kFewestSteps - 1 + task.steps_per_epoch - 1) / task.steps_per_epoch) {}

void ChanceWatch::after_step(const TrainedStep& step) {
  const std::int64_t length = epochs_ * task_.steps_per_epoch, place = (step.step - 1) % length;
  if (place >= length / 2) {
    sum_ += step.loss;
    ++steps_;
  }
  if (place + 1 < length) return;
  // Fewer where a run was resumed in the middle.
  if (!warned_ && steps_ >= kFewestSteps) judge(step.step / task_.steps_per_epoch);
  sum_ = 0;
  steps_ = 0;
}

void ChanceWatch::judge(std::int64_t last_epoch) {
  // Nobody knows what guessing a number costs, nor with weights of any size.
  if (task_.training.task != &classification() || has_class_weights_file(task_.settings)) return;
  const Shape& logits = task_.training.logits.shape();
  const double classes = static_cast<double>(logits[logits.rank() - 1]), chance = std::log(classes);
  const double mean = sum_ / static_cast<double>(steps_);
  if (!(mean >= kNothingLearned * chance)) return;
  warned_ = true;
  const std::string epochs =
      epochs_ == 1 ? concat("epoch ", last_epoch) : concat("epochs ", last_epoch - epochs_ + 1, " to ", last_epoch);
  observer_.warn(concat("warning: the loss of ", epochs, ", ", formatted("%.2f", mean),
                        ", is no better than guessing among ", counted(logits[logits.rank() - 1], "class"), " (",
                        formatted("%.2f", chance), "); ", advice(task_)));
}

CoreLimits CoreLimits::now() { return {.threads = thread_count(), .cores = available_cores(), .quota = cpu_quota()}; }

CoreWatch::CoreWatch(RunObserver& observer) : CoreWatch(observer, seconds_now(), seconds_without_cores()) {}

void CoreWatch::after_step(const TrainedStep&) { look(seconds_now(), seconds_without_cores()); }

void CoreWatch::look(double now, double without_cores) {
  const double seconds = now - start_;
  if (warned_ || seconds < kSecondsWatched) return;
  const double share = (without_cores - without_cores_) / seconds;
  start_ = now;
  without_cores_ = without_cores;
  const std::string crowded = crowded_text(limits_);
  if (share < kMuch && crowded.empty()) return;
  warned_ = true;
  if (!crowded.empty()) return observer_.warn(crowded);
  const bool quota_binds = limits_.quota && *limits_.quota < limits_.threads;
  observer_.warn(concat("note: for ", std::lround(100 * share), "% of the last ",
                        counted(std::lround(seconds), "second"), " threads of this run had no core: ",
                        quota_binds ? quota_text(*limits_.quota) + " allows for less" : "other programs use the cores",
                        "; fewer --threads N for the next run may be faster"));
}

EvaluationWatch::EvaluationWatch(TrainingTask& task, std::string run, RunObserver& observer)
    : task_(task), run_(std::move(run)), observer_(observer) {}

void EvaluationWatch::note_step(const TrainedStep& step) {
  losses_.push_back(step.loss);
  if (losses_.size() > kRecentSteps) losses_.pop_front();
}

void EvaluationWatch::after_evaluation(const Evaluation& judged) {
  const std::string warning =
      warning_of_one_answer(judged, judging_part(task_.data).pictures, "the network", task_.settings.dataset);
  if (!warning.empty()) observer_.warn(warning);
  // Without that there is no need to evaluate more.
  if (may_lag() && is_far_above(judged.loss, recent_loss())) look_at_statistics();
}

bool EvaluationWatch::may_lag() const {
  const std::int64_t steps = task_.session.quantization_step();
  const auto delays = static_cast<std::int64_t>(task_.delays.quantization.size());
  // With weights of classes, or where large errors count less in training, the losses are not comparable.
  if (!task_.settings.class_weights.empty() || task_.settings.huber > 0) return false;
  // Before a delay has passed training computes another network than evaluation.
  return !warned_of_statistics_ && losses_.size() >= kFewestLosses && task_.batches_to_estimate() == 0 &&
         task_.delays.passed(steps).quantization == delays && why_none_updates(task_.training.graph, steps).empty();
}

double EvaluationWatch::recent_loss() const {
  return std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
}

void EvaluationWatch::look_at_statistics() {
  const datasets::Dataset some = datasets::drawn_examples(task_.data.train, kPictures, 1);
  const double evaluated = task_.evaluate_now(some).loss, trained = recent_loss();
  if (!is_far_above(evaluated, trained)) return;
  warned_of_statistics_ = true;
  observer_.warn(concat("warning: the moving statistics of the batch norms lag behind their batches: ",
                        counted(some.size(), concat("training ", some.noun())), " have a loss of ",
                        formatted("%.3f", evaluated), " in evaluation, the last ", counted(losses_.size(), "batch"),
                        " one of ", formatted("%.3f", trained), " in training; at the end, `miniqat reestimate --run ",
                        shell_path(run_), "` estimates them again (docs/reestimate.md)"));
}

}  // namespace miniqat::training
