#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/engine/plan/plan_selection.h"

namespace miniqat {

/// Output `second` of a node.
using TensorKey = std::pair<const Node*, std::size_t>;
inline TensorKey key_of(Output output) { return {output.node, static_cast<std::size_t>(output.index)}; }

/// Where the gradient of a request flows.
struct GradientFlow {
  /// By position in the selected nodes: the gradient reaches one of its outputs and somebody wants it at one of its
  /// inputs.
  std::vector<bool> runs_backward;
  /// The tensors that have a gradient.
  std::set<TensorKey> reached;
  /// (node, input): where backward has to compute one.
  std::set<std::pair<int, int>> inputs;
};

GradientFlow gradient_flow(const std::vector<SelectedNode>& nodes, const PlanRequest& request);

}  // namespace miniqat
