#include "training/settings/optimizers.h"

#include "core/counted.h"
#include "core/suggest.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

std::unique_ptr<Optimizer> sgd(const TrainSettings& settings, double learning_rate, const optim::Schedule& schedule) {
  return std::make_unique<optim::Sgd>(optim::SgdOptions{.learning_rate = learning_rate,
                                                        .momentum = settings.momentum,
                                                        .nesterov = settings.nesterov,
                                                        .weight_decay = settings.weight_decay,
                                                        .decay_all = settings.decay_all,
                                                        .schedule = schedule,
                                                        .ranges = {.learning_rate = settings.range_learning_rate}});
}

std::unique_ptr<Optimizer> adam(const TrainSettings& settings, double learning_rate, const optim::Schedule& schedule) {
  return std::make_unique<optim::Adam>(optim::AdamOptions{.learning_rate = learning_rate,
                                                          .weight_decay = settings.weight_decay,
                                                          .decay_all = settings.decay_all,
                                                          .schedule = schedule,
                                                          .ranges = {.learning_rate = settings.range_learning_rate}});
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const KnownOptimizer& optimizer : known_optimizers()) names.push_back(optimizer.name);
  return names;
}

}  // namespace

std::span<const KnownOptimizer> known_optimizers() {
  static const std::vector<KnownOptimizer> kOptimizers = {
      {.name = "sgd", .default_learning_rate = 0.05, .ignores = {}, .make = sgd},
      {.name = "adam", .default_learning_rate = 0.001, .ignores = {"momentum", "nesterov"}, .make = adam}};
  return kOptimizers;
}

const KnownOptimizer& find_optimizer(const std::string& name) {
  for (const KnownOptimizer& optimizer : known_optimizers())
    if (optimizer.name == name) return optimizer;
  fail_unknown("optimizer", name, optimizer_names());
}

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, std::int64_t total_steps) {
  if (settings.schedule == "cosine" && settings.warmup_steps >= total_steps)
    throw UsageError(concat("--warmup-steps must be less than the run's ", counted(total_steps, "step"),
                            " with --schedule cosine, is ", settings.warmup_steps));
  const optim::Schedule schedule = optim::make_schedule(settings.schedule, {.warmup_steps = settings.warmup_steps,
                                                                            .every = settings.schedule_every,
                                                                            .factor = settings.schedule_factor,
                                                                            .total_steps = total_steps});
  const KnownOptimizer& optimizer = find_optimizer(settings.optimizer);
  return optimizer.make(settings, settings.learning_rate.value_or(optimizer.default_learning_rate), schedule);
}

const char* help_of_optimizer() {
  static const std::string kHelp = alternatives(optimizer_names());
  return kHelp.c_str();
}

const char* help_of_learning_rate() {
  static const std::string kHelp = [] {
    std::vector<std::string> rates;
    for (const KnownOptimizer& optimizer : known_optimizers())
      rates.push_back(concat(optimizer.default_learning_rate, " for ", optimizer.name));
    return "the schedule's base rate; default: " + joined(rates);
  }();
  return kHelp.c_str();
}

}  // namespace miniqat::training
