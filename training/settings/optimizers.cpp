#include "training/settings/optimizers.h"

#include <limits>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "training/settings/usage_error.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

/// Runs of earlier versions may have rates that were 0 in float32.
double held_rate(double rate, const char* name, const TrainSettings& settings) {
  const bool is_of_then = settings.of_a_run && !settings.given.contains(name);
  return is_of_then && rate > 0 && rate < std::numeric_limits<float>::min() ? 0 : rate;
}

optim::LogAdamOptions of_ranges(const TrainSettings& settings) {
  return {.learning_rate = held_rate(settings.range_learning_rate, "range_learning_rate", settings)};
}

std::unique_ptr<Optimizer> sgd(const TrainSettings& settings, double learning_rate, const optim::Schedule& schedule) {
  return std::make_unique<optim::Sgd>(
      optim::SgdOptions{.learning_rate = learning_rate,
                        .momentum = settings.momentum,
                        .nesterov = settings.nesterov,
                        .weight_decay = held_rate(settings.weight_decay, "weight_decay", settings),
                        .decay_all = settings.decay_all,
                        .schedule = schedule,
                        .ranges = of_ranges(settings)});
}

std::unique_ptr<Optimizer> adam(const TrainSettings& settings, double learning_rate, const optim::Schedule& schedule) {
  return std::make_unique<optim::Adam>(
      optim::AdamOptions{.learning_rate = learning_rate,
                         .weight_decay = held_rate(settings.weight_decay, "weight_decay", settings),
                         .decay_all = settings.decay_all,
                         .schedule = schedule,
                         .ranges = of_ranges(settings)});
}

double given_rate(const TrainSettings& settings) {
  return settings.learning_rate.value_or(default_learning_rate(settings));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const KnownOptimizer& optimizer : known_optimizers()) names.push_back(optimizer.name);
  return names;
}

}  // namespace

std::span<const KnownOptimizer> known_optimizers() {
  static const std::vector<KnownOptimizer> kOptimizers = {
      {.name = "sgd", .default_learning_rate = 0.05, .default_rate_of_squares = 0.01, .ignores = {}, .make = sgd},
      {.name = "adam",
       .default_learning_rate = 0.001,
       .default_rate_of_squares = 0.001,
       .ignores = {"momentum", "nesterov"},
       .make = adam}};
  return kOptimizers;
}

const KnownOptimizer& find_optimizer(const std::string& name) {
  for (const KnownOptimizer& optimizer : known_optimizers())
    if (optimizer.name == name) return optimizer;
  fail_unknown("optimizer", name, optimizer_names());
}

double default_learning_rate(const TrainSettings& settings) {
  const KnownOptimizer& optimizer = find_optimizer(settings.optimizer);
  const bool squares = settings.task == regression().name || settings.task == reconstruction().name;
  return squares ? optimizer.default_rate_of_squares : optimizer.default_learning_rate;
}

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
  const double epochs = static_cast<double>(steps) / static_cast<double>(steps_per_epoch);
  const double start = warmup_start(settings) > 0 ? given_rate(settings) : 0;
  const std::string warmup = steps == 0
                                 ? "no warm-up"
                                 : concat("warm-up from ", start, " in ", counted(formatted("%.3g", epochs), "epoch"),
                                          " (", counted(steps, "step"), ")");
  return concat("learning rate: ", given_rate(settings), " for batches of ", settings.scale_learning_rate, ", times ",
                rate_scale(settings), " for batches of ", settings.batch_size, ": ", peak_rate(settings), "; ", warmup);
}

void check_scaled_rate(const TrainSettings& settings) {
  if (settings.scale_learning_rate > 0 && settings.optimizer != "sgd")
    throw UsageError(concat("--scale-learning-rate: the rule is for sgd, not for --optimizer ", settings.optimizer,
                            "; choose its --learning-rate for the batch"));
}

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, const RunLength& run) {
  const std::int64_t warmup = warmup_steps(settings, run.epoch);
  if (warmup != settings.warmup_steps && warmup >= run.steps)
    throw UsageError(concat("--scale-learning-rate warms up in ", kWarmupEpochs, " epochs, which are ",
                            counted(warmup, "step"), "; the run has ", run.steps, ": give --warmup-steps"));
  if (settings.schedule == "cosine" && warmup >= run.steps)
    throw UsageError(concat("--warmup-steps must be less than the run's ", counted(run.steps, "step"),
                            " with --schedule cosine, is ", warmup));
  const optim::Schedule schedule = optim::make_schedule(settings.schedule, {.warmup_steps = warmup,
                                                                            .warmup_start = warmup_start(settings),
                                                                            .every = settings.schedule_every,
                                                                            .factor = settings.schedule_factor,
                                                                            .total_steps = run.steps});
  const double rate = held_rate(peak_rate(settings), "learning_rate", settings);
  return find_optimizer(settings.optimizer).make(settings, rate, schedule);
}

const char* help_of_optimizer() {
  static const std::string kHelp = alternatives(optimizer_names());
  return kHelp.c_str();
}

const char* help_of_learning_rate() {
  static const std::string kHelp = [] {
    std::vector<std::string> rates;
    for (const KnownOptimizer& optimizer : known_optimizers())
      rates.push_back(concat(optimizer.default_learning_rate, " for ", optimizer.name,
                             optimizer.default_rate_of_squares == optimizer.default_learning_rate
                                 ? ""
                                 : concat(" (", optimizer.default_rate_of_squares, " to regress and reconstruct)")));
    return "the schedule's base rate; default: " + joined(rates);
  }();
  return kHelp.c_str();
}

}  // namespace miniqat::training
