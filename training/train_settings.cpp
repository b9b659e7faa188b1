#include "training/train_settings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/counted.h"
#include "core/quote.h"
#include "core/suggest.h"
#include "datasets/dataset.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "training/model_source.h"
#include "training/save_interval.h"
#include "training/settings.h"
#include "training/usage_error.h"

namespace miniqat::training {
namespace {

void require(bool right, const std::string& text) {
  if (!right) throw UsageError(text);
}

const char* symmetry(const quantize::RewriteOptions& options) {
  if (options.symmetric) return " symmetric";
  return options.symmetric_weights ? " symmetric weights" : "";
}

}  // namespace

void check_dataset(const std::string& name) {
  const std::vector<std::string>& known = datasets::dataset_names();
  if (std::ranges::find(known, name) == known.end()) throw UsageError(unknown_name("data set", name, known));
}

std::string resolved_augment(const TrainSettings& settings) {
  if (settings.augment != "auto") return settings.augment;
  return settings.dataset == "cifar10" ? "crop-flip" : "none";
}

datasets::AugmentOptions augmentation(const TrainSettings& settings) {
  const std::string name = resolved_augment(settings);
  if (name == "none") return {};
  if (name == "crop-flip") return datasets::crop_and_flip();
  throw UsageError(concat("--augment must be auto, none or crop-flip, got ", quote(name)));
}

double default_learning_rate(const std::string& optimizer) { return optimizer == "adam" ? 0.001 : 0.05; }

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, std::int64_t total_steps) {
  if (settings.schedule == "cosine")
    require(settings.warmup_steps < total_steps,
            concat("--warmup-steps must be less than the run's ", counted(total_steps, "step"),
                   " with --schedule cosine, is ", settings.warmup_steps));
  const optim::Schedule schedule = optim::make_schedule(settings.schedule, {.warmup_steps = settings.warmup_steps,
                                                                            .every = settings.schedule_every,
                                                                            .factor = settings.schedule_factor,
                                                                            .total_steps = total_steps});
  const double learning_rate = settings.learning_rate.value_or(default_learning_rate(settings.optimizer));
  if (settings.optimizer == "sgd")
    return std::make_unique<optim::Sgd>(optim::SgdOptions{.learning_rate = learning_rate,
                                                          .momentum = settings.momentum,
                                                          .nesterov = settings.nesterov,
                                                          .weight_decay = settings.weight_decay,
                                                          .decay_all = settings.decay_all,
                                                          .schedule = schedule});
  if (settings.optimizer == "adam")
    return std::make_unique<optim::Adam>(optim::AdamOptions{.learning_rate = learning_rate,
                                                            .weight_decay = settings.weight_decay,
                                                            .decay_all = settings.decay_all,
                                                            .schedule = schedule});
  fail(unknown_name("optimizer", settings.optimizer, std::vector<std::string>{"sgd", "adam"}));
}

namespace {

/// Under their own names these would be "every" and "factor".
void check_schedule(const TrainSettings& settings) {
  if (settings.schedule != "step" && settings.schedule != "exponential") return;
  require(settings.schedule_every >= 1,
          concat("--schedule-every must be at least 1 step, is ", settings.schedule_every));
  require(settings.schedule_factor > 0 && settings.schedule_factor <= 1,
          concat("--schedule-factor must be in (0, 1], is ", settings.schedule_factor));
}

}  // namespace

void check(const TrainSettings& settings) {
  as_usage([&] { check_model_name(settings.model); });
  check_dataset(settings.dataset);
  augmentation(settings);
  check_options<TrainSettings>([&] { settings.rewrite.check(); });
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
  require(settings.steps >= 0 && settings.steps <= kMostSteps,
          concat("--steps must be in 0..", kMostSteps, ", got ", settings.steps));
  require((settings.epochs >= 1 || settings.steps > 0) && settings.epochs <= 1'000'000,
          concat("--epochs must be in 1..1000000, got ", settings.epochs));
  require(settings.warmup_steps <= kMostSteps,
          concat("--warmup-steps must be at most ", kMostSteps, ", got ", settings.warmup_steps));
  require(settings.batch_size >= 1 && settings.batch_size <= 65536,
          concat("--batch-size must be in 1..65536, got ", settings.batch_size));
  require(settings.threads >= 0 && settings.threads <= 1024,
          concat("--threads must be in 0..1024, got ", settings.threads));
  require(settings.seed >= 0 && settings.seed <= kMostSteps,
          concat("--seed must be in 0..", kMostSteps, ", got ", settings.seed));
  require(std::isfinite(settings.width) && settings.width > 0 && settings.width <= 16,
          concat("--width must be in (0, 16], got ", settings.width));
  require(settings.log_every >= 1, concat("--log-every must be at least 1, got ", settings.log_every));
  SaveInterval{settings.save_every};
  check_schedule(settings);
  check_options<TrainSettings>([&] { make_optimizer(settings, settings.warmup_steps + 1); });
}

std::string quantization_label(const TrainSettings& settings) {
  if (settings.float_only) return "float";
  return concat("W", settings.rewrite.weight_bits, "A", settings.rewrite.activation_bits,
                settings.rewrite.bits_config.empty() ? "" : " mixed",
                settings.rewrite.per_channel ? " per channel" : "", symmetry(settings.rewrite),
                settings.rewrite.bn_fold == quantize::BnFold::kSingle ? " single" : "");
}

}  // namespace miniqat::training
