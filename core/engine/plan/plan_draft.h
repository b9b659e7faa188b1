#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/arena.h"
#include "core/engine/plan/plan.h"
#include "core/engine/plan/plan_gradients.h"
#include "core/engine/plan/plan_selection.h"
#include "core/engine/plan/planned_value.h"

namespace miniqat {

/// A plan while compile_plan makes it: what its passes learn, each from those before it. Steps are numbered: node i of
/// n runs forward in step i and backward in step 2n-1-i.
struct PlanDraft {
  PlanDraft(const Graph& graph, const PlanRequest& request);

  const Graph& graph;
  const PlanRequest& request;
  std::unique_ptr<Plan> plan = std::make_unique<Plan>();

  /// Only what the request needs: dead code falls away.
  std::vector<SelectedNode> nodes;
  /// The position of the node that makes a tensor.
  std::unordered_map<const Node*, int> index;
  GradientFlow flow;
  std::map<TensorKey, PlannedValue> values;
  std::map<TensorKey, PlannedValue> gradients;
  /// Saved tensors and parts of gradients.
  std::vector<PlannedValue> loose;
  std::vector<Lifetime> buffers;
  /// Tensors that some node, fetch or gradient takes.
  std::set<TensorKey> read;
  /// The place of node i in plan->forward, and the node of each step of plan->backward.
  std::unordered_map<int, int> forward_of;
  std::vector<int> backward_node;
  /// The nodes whose output 0 has to be unpacked before a step.
  std::map<int, std::vector<int>> packed_by_step;

  int count() const { return static_cast<int>(nodes.size()); }
  int backward_step(int i) const { return 2 * count() - 1 - i; }
  int end() const { return 2 * count(); }
  bool fast() const { return request.backend == Backend::kFast; }

  /// In the request's precision.
  TensorSpec planned(const TensorSpec& spec) const;
  PlannedValue& value(Output output) { return values.at(key_of(output)); }
  const PlannedValue& value(Output output) const { return values.at(key_of(output)); }
  Tensor* new_tensor() { return &plan->tensors.emplace_back(); }

  int new_buffer(std::size_t bytes, int first, int last);
  /// Gives `value` a buffer of its own from step `first` on.
  void own_buffer(PlannedValue& value, int first);
  void share_buffer(PlannedValue& value, int buffer);
  /// A tensor that is no node's output, alive from step `first` to step `last`.
  Tensor* add_loose(const TensorSpec& spec, int first, int last);
};

}  // namespace miniqat
