#include "training/settings/scaled_rate.h"

#include "core/classic.h"
#include "core/concat.h"
#include "core/text/counted.h"
#include "training/settings/optimizers.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

double given_rate(const TrainSettings& settings) {
  return settings.learning_rate.value_or(find_optimizer(settings.optimizer).default_learning_rate);
}

}  // namespace

double rate_scale(const TrainSettings& settings) {
  if (settings.scale_learning_rate == 0) return 1;
  return static_cast<double>(settings.batch_size) / static_cast<double>(settings.scale_learning_rate);
}

double peak_rate(const TrainSettings& settings) { return given_rate(settings) * rate_scale(settings); }

double warmup_start(const TrainSettings& settings) {
  const double scale = rate_scale(settings);
  return scale > 1 ? 1 / scale : 0;
}

std::int64_t warmup_steps(const TrainSettings& settings, std::int64_t steps_per_epoch) {
  if (settings.warmup_steps != 0 || rate_scale(settings) <= 1) return settings.warmup_steps;
  return kWarmupEpochs * steps_per_epoch;
}

std::string scaling_note(const TrainSettings& settings, std::int64_t steps_per_epoch) {
  if (settings.scale_learning_rate == 0) return "";
  const std::int64_t steps = warmup_steps(settings, steps_per_epoch);
  char epochs[32];
  classic_snprintf(epochs, sizeof epochs, "%.3g", static_cast<double>(steps) / static_cast<double>(steps_per_epoch));
  const double start = warmup_start(settings) > 0 ? given_rate(settings) : 0;
  const std::string warmup =
      steps == 0 ? "no warm-up"
                 : concat("warm-up from ", start, " in ", epochs, " epochs (", counted(steps, "step"), ")");
  return concat("learning rate: ", given_rate(settings), " for batches of ", settings.scale_learning_rate, ", times ",
                rate_scale(settings), " for batches of ", settings.batch_size, ": ", peak_rate(settings), "; ", warmup);
}

void check_scaled_rate(const TrainSettings& settings) {
  if (settings.scale_learning_rate < 0 || settings.scale_learning_rate > 65536)
    throw UsageError(concat("--scale-learning-rate must be in 0..65536, got ", settings.scale_learning_rate));
  if (settings.scale_learning_rate > 0 && settings.optimizer != "sgd")
    throw UsageError(concat("--scale-learning-rate: the rule is for sgd, not for --optimizer ", settings.optimizer,
                            "; choose its --learning-rate for the batch"));
}

}  // namespace miniqat::training
