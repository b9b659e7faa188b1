#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/optimizer.h"
#include "optim/schedule.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

struct KnownOptimizer {
  std::string name;
  /// The default of --learning-rate.
  double default_learning_rate;
  /// The default for tasks whose loss grows with the square of an error, which has no bound.
  double default_rate_of_squares;
  /// Settings that others have and that it does not read.
  std::vector<const char*> ignores;
  std::unique_ptr<Optimizer> (*make)(const TrainSettings& settings, double learning_rate, const optim::Schedule&);
};

/// All of them, the default first.
std::span<const KnownOptimizer> known_optimizers();

/// Throws Error that lists the names when `name` is none of them.
const KnownOptimizer& find_optimizer(const std::string& name);

/// The default of --learning-rate for the settings' optimizer and task.
double default_learning_rate(const TrainSettings& settings);

/// --scale-learning-rate: a batch that is k times as large takes a rate that is k times as high, which is reached from
/// the given rate in a gradual warm-up (Goyal et al. 2017, "Accurate, Large Minibatch SGD", sections 2.1 and 2.2).

/// Epochs of its warm-up without --warmup-steps, as in the paper.
inline constexpr std::int64_t kWarmupEpochs = 5;

/// k: the batch size over the one for which the rate was chosen; 1 where nothing is scaled.
double rate_scale(const TrainSettings& settings);

/// The base rate of the schedule: the given one, or the optimizer's default, times rate_scale().
double peak_rate(const TrainSettings& settings);

/// The factor from which warm-up rises: 1/k with a rate that is scaled up, else 0.
double warmup_start(const TrainSettings& settings);

/// The settings' own or, where a rate is scaled up and they have none, kWarmupEpochs.
std::int64_t warmup_steps(const TrainSettings& settings, std::int64_t steps_per_epoch);

/// What was done, in a line for people; "" where nothing is scaled.
std::string scaling_note(const TrainSettings& settings, std::int64_t steps_per_epoch);

/// Throws UsageError beside an optimizer other than sgd.
void check_scaled_rate(const TrainSettings& settings);

struct RunLength {
  std::int64_t steps = 0;
  /// Steps of an epoch.
  std::int64_t epoch = 0;
};

/// The optimizer with its schedule over the run, and its rate as --scale-learning-rate has it. Throws UsageError for a
/// warm-up that a cosine, or a scaled rate without --warmup-steps, has no room for.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, const RunLength& run);

}  // namespace miniqat::training
