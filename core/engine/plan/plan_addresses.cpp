#include "core/engine/plan/plan_addresses.h"

#include "core/error.h"
#include "core/guarded_memory.h"

namespace miniqat {
namespace {

/// The memory of the plan's buffers: one arena, or while it is guarded each stretch on its own.
class Memory {
 public:
  explicit Memory(const PlanDraft& draft) : plan_(*draft.plan), layout_(place_in_arena(draft.buffers)) {
    if (layout_.bytes > static_cast<std::size_t>(Shape::kMaxElements) * sizeof(double))
      fail("the graph's activations would take ", layout_.bytes, " bytes");
    plan_.memory.arena = layout_.bytes;
    if (is_guarding())
      for (const Lifetime& buffer : draft.buffers)
        plan_.stretches.emplace_back(Shape{static_cast<std::int64_t>(buffer.bytes)}, DType::kUInt8);
    else
      plan_.arena = Tensor(Shape{static_cast<std::int64_t>((layout_.bytes + 7) / 8)}, DType::kInt64);
  }

  Tensor view(int buffer, const TensorSpec& spec) const {
    return Tensor::view(is_guarding() ? plan_.stretches[buffer].raw()
                                      : static_cast<std::byte*>(plan_.arena.raw()) + layout_.offsets[buffer],
                        spec);
  }

  void give(const PlannedValue& value) {
    if (value.buffer == PlannedValue::kNone) return;
    *value.tensor = view(value.buffer, value.spec);
    plan_.memory.unshared += value.spec.bytes();
  }

 private:
  Plan& plan_;
  const ArenaLayout layout_;
};

}  // namespace

void assign_addresses(PlanDraft& draft) {
  Plan& plan = *draft.plan;
  Memory memory(draft);
  for (const auto& [key, value] : draft.values) memory.give(value);
  for (const auto& [key, value] : draft.gradients) memory.give(value);
  for (const PlannedValue& value : draft.loose) memory.give(value);
  const auto forward_context = [&](int i) { return &plan.forward[draft.forward_of.at(i)].context; };
  for (std::size_t k = 0; k < plan.backward.size(); ++k) {
    Plan::BackwardStep& step = plan.backward[k];
    step.context.forward = forward_context(draft.backward_node[k]);
    for (const int i : draft.packed_by_step[draft.backward_step(draft.backward_node[k])]) {
      const SelectedNode& selected = draft.nodes[i];
      const PlannedValue& out = draft.value(selected.outputs[0]);
      step.unpacks.push_back(&plan.packed.emplace_back(Plan::Packed{
          selected.op, forward_context(i), out.tensor, *out.tensor, memory.view(out.unpacked_buffer, out.spec)}));
    }
  }
  for (const Output& fetch : draft.request.fetches) plan.fetches.push_back(draft.value(fetch).tensor);
}

}  // namespace miniqat
