#include "core/engine/plan/plan_liveness.h"

#include <algorithm>

#include "core/graph/op_interfaces.h"

namespace miniqat {
namespace {

/// Tensors of fewer bytes are not worth the work of packing them.
constexpr std::size_t kWorthPacking = std::size_t{1} << 18;

/// Some node gives the same memory another shape.
bool is_viewed(const PlanDraft& draft, const Output& output) {
  return std::ranges::any_of(
      draft.nodes, [&](const SelectedNode& selected) { return selected.traits.view && selected.inputs[0] == output; });
}

void keep_until(PlanDraft& draft, Output output, int step) {
  PlannedValue& kept = draft.value(output);
  kept.last_read = std::max(kept.last_read, step);
  if (step < draft.count())
    kept.last_forward_read = std::max(kept.last_forward_read, step);
  else if (kept.first_backward_read == PlannedValue::kNone || step < kept.first_backward_read)
    kept.first_backward_read = step;
}

}  // namespace

void note_reads(PlanDraft& draft) {
  const auto read = [&](Output output, int step) {
    keep_until(draft, output, step);
    draft.read.insert(key_of(output));
  };
  for (int i = 0; i < draft.count(); ++i) {
    const SelectedNode& selected = draft.nodes[i];
    for (const Output& output : selected.outputs) keep_until(draft, output, draft.fast() ? i : draft.end());
    for (const Output& input : selected.inputs) read(input, i);
    if (!draft.flow.runs_backward[i]) continue;
    for (const int k : selected.traits.backward_inputs) read(selected.inputs[k], draft.backward_step(i));
    for (const int k : selected.traits.backward_outputs) read(selected.outputs[k], draft.backward_step(i));
  }
  for (const Output& fetch : draft.request.fetches) read(fetch, draft.end());
  if (draft.request.gradients_of) read(*draft.request.gradients_of, 0);
}

void choose_packing(PlanDraft& draft) {
  if (!draft.fast() || !draft.request.training) return;
  for (const SelectedNode& selected : draft.nodes) {
    PlannedValue& out = draft.value(selected.outputs[0]);
    const bool rests = out.first_backward_read != PlannedValue::kNone && out.last_read < draft.end();
    if (!rests || out.spec.bytes() < kWorthPacking || is_viewed(draft, selected.outputs[0]) ||
        !packed_output_of(*selected.op, selected.input_specs(), phase_of(draft.request)))
      continue;
    out.unpacked_buffer = draft.new_buffer(out.spec.bytes(), out.first_backward_read, out.last_read);
    out.last_read = out.last_forward_read;
  }
}

}  // namespace miniqat
