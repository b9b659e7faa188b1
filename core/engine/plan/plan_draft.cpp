#include "core/engine/plan/plan_draft.h"

#include <algorithm>

namespace miniqat {

PlanDraft::PlanDraft(const Graph& graph, const PlanRequest& request)
    : graph(graph), request(request), nodes(select_nodes(graph, request)), flow(gradient_flow(nodes, request)) {
  for (int i = 0; i < count(); ++i) {
    const SelectedNode& selected = nodes[i];
    if (selected.fused) plan->fused.push_back(selected.fused);
    plan->memory.nodes += static_cast<int>(selected.members.size());
    for (const Output& output : selected.outputs) {
      index[output.node] = i;
      values[key_of(output)] = {.spec = planned(output.spec()), .tensor = new_tensor()};
    }
  }
  plan->memory.steps = count();
  plan->memory.dropped_nodes = static_cast<int>(graph.size()) - plan->memory.nodes;
}

TensorSpec PlanDraft::planned(const TensorSpec& spec) const {
  return {spec.shape, spec.dtype == DType::kFloat32 ? request.precision : spec.dtype};
}

int PlanDraft::new_buffer(std::size_t bytes, int first, int last) {
  buffers.push_back({bytes, first, last});
  return static_cast<int>(buffers.size()) - 1;
}

void PlanDraft::own_buffer(PlannedValue& value, int first) {
  value.buffer = new_buffer(value.spec.bytes(), first, value.last_read);
}

void PlanDraft::share_buffer(PlannedValue& value, int buffer) {
  value.buffer = buffer;
  buffers[buffer].last = std::max(buffers[buffer].last, value.last_read);
}

Tensor* PlanDraft::add_loose(const TensorSpec& spec, int first, int last) {
  Tensor* tensor = new_tensor();
  loose.push_back({.spec = spec, .buffer = new_buffer(spec.bytes(), first, last), .tensor = tensor});
  return tensor;
}

}  // namespace miniqat
