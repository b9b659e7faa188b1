#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"

// Which ops are losses, and what these compare. Whoever does something with a loss asks here, not for a type.

namespace miniqat {

/// The numbers that a loss takes as targets.
enum class TargetValues {
  /// int32: a class, which is a place in the prediction's last axis.
  kClasses,
  /// float32, 0 to 1.
  kProbabilities,
  /// float32 of any size.
  kNumbers,
};

/// Two inputs of a loss: what a network says and what it should say.
struct LossInputs {
  int prediction = 0;
  int target = 1;
  TargetValues values = TargetValues::kNumbers;
};

/// None for an op that is no loss.
std::optional<LossInputs> loss_inputs(const Op& op);
bool is_loss(const Node& node);

/// Whether it is the target of a loss.
bool is_target(const Use& use);
/// Whether it is that, or the only input of a node whose results are read and read as targets alone: a target in
/// another shape.
bool leads_to_targets(const Use& use);

/// Throw Error for a node that is no loss.
Output prediction_of(const Node& loss);
Output target_of(const Node& loss);

/// The losses that take the tensor as their target, those with targets of this kind, in the order in which they came.
std::vector<const Node*> losses_with_target(const Output& target, TargetValues values);

}  // namespace miniqat
