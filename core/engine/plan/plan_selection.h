#pragma once

#include <memory>
#include <vector>

#include "core/engine/plan/plan.h"
#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat {

/// A node that a request needs, or several that run as one.
struct SelectedNode {
  /// Of several, the one that names the whole.
  const Node* node = nullptr;
  /// The node's own, or the fused one.
  const Op* op = nullptr;
  OpTraits traits;
  /// Its inputs: the node's own, or those that a shortcut puts in their place.
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  /// All nodes that run here, producers first: more than one where they are fused.
  std::vector<const Node*> members;
  /// What each of them takes.
  std::vector<std::vector<Output>> member_inputs;
  /// Owns a fused op.
  std::shared_ptr<const Op> fused;

  std::vector<TensorSpec> input_specs() const;
  /// The inputs that a run in this phase updates through this node.
  std::vector<int> updated_inputs(const Phase& phase) const;
};

Phase phase_of(const PlanRequest& request);

/// The nodes that the request's fetches and gradient need, producers first. On the fast backend shortcuts are taken,
/// which spares the nodes that then nobody needs (a node that updates variables runs all the same), and ops are fused.
/// Throws Error for a request that compile_plan refuses, and for a shortcut that would take a tensor which does not
/// come earlier.
std::vector<SelectedNode> select_nodes(const Graph& graph, const PlanRequest& request);

}  // namespace miniqat
