#include "training/train/chance_watch.h"

#include <cmath>
#include <cstdio>
#include <string>

namespace miniqat::training {
namespace {

constexpr std::int64_t kFewestSteps = 20;
/// Of ln(classes): a network that has learned anything at all is below.
constexpr double kNothingLearned = 0.98;

std::string in_digits(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", loss);
  return text;
}

/// The likeliest cause first.
std::string advice(const TrainingTask& task) {
  const TrainSettings& settings = task.settings;
  if (task.quantization.is_float()) return "try a lower --learning-rate, or --warmup-steps";
  constexpr int kFewBits = 4;
  const bool observes_few =
      (settings.rewrite.weight_bits <= kFewBits && !traits_of(settings.rewrite.weight_range()).learned) ||
      (settings.rewrite.activation_bits <= kFewBits && !traits_of(settings.rewrite.activation_range()).learned);
  if (observes_few) return "with so few bits try --ranges learned (docs/low-bits.md)";
  if (settings.init_checkpoint.empty()) return "try a lower --learning-rate, or --init-checkpoint with a float run";
  return "try a lower --learning-rate";
}

}  // namespace

void ChanceWatch::after_step(std::int64_t step, double loss) {
  const std::int64_t place = (step - 1) % task_.steps_per_epoch;
  if (place >= task_.steps_per_epoch / 2) {
    sum_ += loss;
    ++steps_;
  }
  if (place + 1 < task_.steps_per_epoch) return;
  if (!warned_ && steps_ >= kFewestSteps) judge(step / task_.steps_per_epoch);
  sum_ = 0;
  steps_ = 0;
}

void ChanceWatch::judge(std::int64_t epoch) {
  const Shape& logits = task_.training.logits.shape();
  const double classes = static_cast<double>(logits[logits.rank() - 1]), chance = std::log(classes);
  const double mean = sum_ / static_cast<double>(steps_);
  if (!(mean >= kNothingLearned * chance)) return;
  warned_ = true;
  observer_.warn(concat("warning: the loss of epoch ", epoch, ", ", in_digits(mean),
                        ", is no better than guessing among ", logits[logits.rank() - 1], " classes (",
                        in_digits(chance), "); ", advice(task_)));
}

}  // namespace miniqat::training
