#include "core/engine/plan/plan_gradients.h"

#include <algorithm>

namespace miniqat {
namespace {

bool differentiable(const SelectedNode& selected, int input) {
  const std::vector<int>& none = selected.traits.no_gradient;
  return std::ranges::find(none, input) == none.end() && selected.inputs[input].spec().dtype == DType::kFloat32;
}

/// Of output 0 (of fused nodes the last; others of them may give further outputs).
const Node* producer(const SelectedNode& selected) { return selected.outputs.front().node; }

}  // namespace

GradientFlow gradient_flow(const std::vector<SelectedNode>& nodes, const PlanRequest& request) {
  GradientFlow flow;
  flow.runs_backward.assign(nodes.size(), false);
  if (!request.gradients_of) return flow;
  std::set<const Node*> wanting;
  for (const Output& target : request.gradient_targets) wanting.insert(target.node);
  const auto takes_gradient = [&](const SelectedNode& selected, std::size_t input) {
    return differentiable(selected, static_cast<int>(input)) && wanting.contains(selected.inputs[input].node);
  };
  for (const SelectedNode& selected : nodes)
    for (std::size_t k = 0; k < selected.inputs.size(); ++k)
      if (takes_gradient(selected, k))
        for (const Output& output : selected.outputs) wanting.insert(output.node);
  if (!wanting.contains(request.gradients_of->node)) return flow;
  flow.reached.insert(key_of(*request.gradients_of));
  for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
    const SelectedNode& selected = nodes[i];
    if (selected.inputs.empty() || !wanting.contains(producer(selected))) continue;
    flow.runs_backward[i] = std::ranges::any_of(
        selected.outputs, [&](const Output& output) { return flow.reached.contains(key_of(output)); });
    if (!flow.runs_backward[i]) continue;
    for (std::size_t k = 0; k < selected.inputs.size(); ++k)
      if (takes_gradient(selected, k)) {
        flow.reached.insert(key_of(selected.inputs[k]));
        flow.inputs.insert({i, static_cast<int>(k)});
      }
  }
  return flow;
}

}  // namespace miniqat
