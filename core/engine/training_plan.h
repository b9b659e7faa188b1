#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/engine/plan/plan.h"
#include "core/engine/plan/plan_request.h"

namespace miniqat {

struct ShardedPlan;

/// A training step's plan together with all that a session would otherwise look up by name in every step.
struct TrainingPlan {
  struct Update {
    const std::string* name = nullptr;
    /// Optimizer::multiplicative() changes it.
    bool is_multiplicative = false;
    Tensor* value = nullptr;
    const Tensor* gradient = nullptr;
    std::vector<Tensor*> slots;
  };

  Output loss;
  /// Delays::passed.
  std::int64_t delays_passed = 0;
  Plan* plan = nullptr;
  /// The plans of a step in slices, of which `plan` is the first; null for a step in one piece.
  ShardedPlan* shards = nullptr;
  /// Optimizer::slot_names of the optimizer that the updates are for, and of its multiplicative().
  std::span<const std::string_view> slot_names;
  std::span<const std::string_view> multiplicative_slot_names;
  std::vector<Update> updates;
};

}  // namespace miniqat
