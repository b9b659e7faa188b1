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

/// An optimizer that has a name.
struct KnownOptimizer {
  std::string name;
  /// The default of --learning-rate.
  double default_learning_rate;
  /// Settings that others have and that it does not read.
  std::vector<const char*> ignores;
  std::unique_ptr<Optimizer> (*make)(const TrainSettings& settings, double learning_rate, const optim::Schedule&);
};

/// All of them, the default first.
std::span<const KnownOptimizer> known_optimizers();

/// Throws Error that lists the names when `name` is none of them.
const KnownOptimizer& find_optimizer(const std::string& name);

struct RunLength {
  std::int64_t steps = 0;
  /// Steps of an epoch.
  std::int64_t epoch = 0;
};

/// The optimizer with its schedule over the run, and its rate as --scale-learning-rate has it. Throws UsageError for a
/// warm-up that a cosine, or a scaled rate without --warmup-steps, has no room for.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, const RunLength& run);

}  // namespace miniqat::training
