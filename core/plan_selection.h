#pragma once

#include <vector>

#include "core/graph.h"
#include "core/plan.h"

namespace miniqat {

/// A node that a request needs.
struct SelectedNode {
  const Node* node = nullptr;
  OpTraits traits;
  /// What it takes: the node's own inputs, or what a shortcut puts in their place.
  std::vector<Output> inputs;
  bool quantizing = true;
  bool frozen = false;

  /// Whether a run of the request changes variables through this node.
  bool updates(const PlanRequest& request) const {
    return request.training && !frozen && !(traits.updated_inputs.empty() && node->op().state().empty());
  }
};

/// The nodes that the request's fetches and gradient need, producers first. On the fast backend shortcuts are taken,
/// which spares the nodes that then nobody needs; a node that updates variables runs all the same.
/// Throws Error for a shortcut that would take a tensor which does not come earlier.
std::vector<SelectedNode> select_nodes(const Graph& graph, const PlanRequest& request);

/// How many of the graph's delays have passed: requests that differ in nothing else may share a plan when they agree.
struct PassedDelays {
  int quantization = 0;
  int freeze = 0;
};
PassedDelays passed_delays(const Graph& graph, std::int64_t quantization_step);

}  // namespace miniqat
