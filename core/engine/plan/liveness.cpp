#include <algorithm>

#include "core/engine/plan/passes.h"
#include "core/graph/op_interfaces.h"

namespace miniqat {
namespace {

/// Tensors of fewer bytes are not worth the work of packing them.
constexpr std::size_t kWorthPacking = std::size_t{1} << 18;

bool differentiable(const SelectedNode& selected, int input) {
  const std::vector<int>& none = selected.traits.no_gradient;
  return std::ranges::find(none, input) == none.end() && selected.inputs[input].spec().dtype == DType::kFloat32;
}

/// The node of output 0: the last one of fused nodes, though others of them may give further outputs.
const Node* producer(const SelectedNode& selected) { return selected.outputs.front().node; }

TensorLives reads_of_tensors(const SelectedNodes& nodes, const GradientFlow& flow, const PlanRequest& request) {
  const int count = static_cast<int>(nodes.size());
  TensorLives lives;
  const auto keep_until = [&](const Output& output, int step) -> TensorLife& {
    TensorLife& life = lives[key_of(output)];
    life.last_read = std::max(life.last_read, step);
    if (step < count)
      life.last_forward_read = std::max(life.last_forward_read, step);
    else if (life.first_backward_read == TensorLife::kNever || step < life.first_backward_read)
      life.first_backward_read = step;
    return life;
  };
  const auto read = [&](const Output& output, int step) { keep_until(output, step).is_read = true; };
  for (int i = 0; i < count; ++i) {
    const SelectedNode& selected = nodes[i];
    for (const Output& output : selected.outputs)
      keep_until(output, request.backend == Backend::kFast ? i : end_step(nodes));
    for (const Output& input : selected.inputs) read(input, i);
    if (!flow.runs_backward[i]) continue;
    for (const int k : selected.traits.backward_inputs) read(selected.inputs[k], backward_step(nodes, i));
    for (const int k : selected.traits.backward_outputs) read(selected.outputs[k], backward_step(nodes, i));
  }
  for (const Output& fetch : request.fetches) read(fetch, end_step(nodes));
  if (request.gradients_of) read(*request.gradients_of, 0);
  return lives;
}

/// The outputs that some node gives another shape in the same memory.
std::set<TensorKey> viewed_tensors(const SelectedNodes& nodes) {
  std::set<TensorKey> viewed;
  for (const SelectedNode& selected : nodes)
    if (selected.traits.view) viewed.insert(key_of(selected.inputs[0]));
  return viewed;
}

}  // namespace

GradientFlow gradient_flow(const SelectedNodes& nodes, const PlanRequest& request) {
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

TensorLives tensor_lives(const SelectedNodes& nodes, const GradientFlow& flow, const PlanRequest& request) {
  TensorLives lives = reads_of_tensors(nodes, flow, request);
  if (request.backend != Backend::kFast || !request.training) return lives;
  const std::set<TensorKey> viewed = viewed_tensors(nodes);
  for (const SelectedNode& selected : nodes) {
    const Output& out = selected.outputs[0];
    TensorLife& life = lives.at(key_of(out));
    const bool rests = life.first_backward_read != TensorLife::kNever && life.last_read < end_step(nodes);
    life.is_packed = rests && out.spec().bytes() >= kWorthPacking && !viewed.contains(key_of(out)) &&
                     packed_output_of(*selected.op, selected.input_specs(), phase_of(request));
  }
  return lives;
}

}  // namespace miniqat
