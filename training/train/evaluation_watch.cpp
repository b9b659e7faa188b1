#include "training/train/evaluation_watch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/one_answer.h"
#include "training/run/validation_part.h"

namespace miniqat::training {
namespace {

constexpr std::size_t kRecentSteps = 50, kFewestLosses = 10;
constexpr std::int64_t kPictures = 1000;
/// Losses near 0 differ by factors without a reason.
constexpr double kFactor = 2, kLeastDifference = 0.1;

bool is_far_above(double evaluated, double trained) {
  return evaluated > kFactor * trained && evaluated > trained + kLeastDifference;
}

std::string in_three_digits(double loss) {
  char text[32];
  classic_snprintf(text, sizeof text, "%.3f", loss);
  return text;
}

}  // namespace

EvaluationWatch::EvaluationWatch(TrainingTask& task, std::string run, RunObserver& observer)
    : task_(task), run_(std::move(run)), observer_(observer) {}

void EvaluationWatch::after_step(double loss) {
  losses_.push_back(loss);
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
  // With weights of classes the losses are not comparable.
  if (!task_.settings.class_weights.empty()) return false;
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
                        counted(some.size(), "training picture"), " have a loss of ", in_three_digits(evaluated),
                        " in evaluation, the last ", counted(losses_.size(), "batch"), " one of ",
                        in_three_digits(trained), " in training; at the end, `miniqat reestimate --run ",
                        shell_path(run_), "` estimates them again (docs/reestimate.md)"));
}

}  // namespace miniqat::training
