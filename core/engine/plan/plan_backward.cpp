#include "core/engine/plan/plan_backward.h"

#include <algorithm>
#include <tuple>

namespace miniqat {
namespace {

class BackwardLayout {
 public:
  explicit BackwardLayout(PlanDraft& draft) : draft_(draft), plan_(*draft.plan), nodes_(draft.nodes) {}

  void lay_out() {
    const PlanRequest& request = draft_.request;
    if (!request.gradients_of || draft_.flow.reached.empty()) {
      plan_.gradients.assign(request.gradient_targets.size(), nullptr);
      return;
    }
    PlannedValue& seed = gradient(*request.gradients_of);
    draft_.own_buffer(seed, draft_.count());
    plan_.seed = seed.tensor;
    for (int i = draft_.count() - 1; i >= 0; --i)
      if (draft_.flow.runs_backward[i]) lay_out(i);
    for (const Output& target : request.gradient_targets)
      plan_.gradients.push_back(is_reached(target) ? gradient(target).tensor : nullptr);
  }

 private:
  bool is_reached(const Output& output) const { return draft_.flow.reached.contains(key_of(output)); }

  PlannedValue& gradient(Output output) {
    const auto [found, fresh] = draft_.gradients.try_emplace(key_of(output));
    if (fresh) {
      const int i = draft_.index.at(output.node);
      const std::vector<Output>& targets = draft_.request.gradient_targets;
      const bool is_target = std::ranges::find(targets, output) != targets.end();
      const bool stays = !draft_.fast() || is_target || !draft_.flow.runs_backward[i];
      found->second = {.spec = draft_.planned(output.spec()),
                       .last_read = stays ? draft_.end() : draft_.backward_step(i),
                       .tensor = draft_.new_tensor()};
    }
    return found->second;
  }

  void lay_out(int i) {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const int now = draft_.backward_step(i);
    Plan::BackwardStep step{.node = nodes_[i].node, .op = nodes_[i].op, .context = {}, .sums = {}, .unpacks = {}};
    for (const Output& output : nodes_[i].outputs)
      step.context.d_outputs.push_back(is_reached(output) ? gradient(output).tensor : nullptr);
    for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
      if (!draft_.flow.inputs.contains({i, k})) {
        step.context.d_inputs.push_back(nullptr);
        continue;
      }
      PlannedValue& total = gradient(inputs[k]);
      if (total.buffer != PlannedValue::kNone) {
        const Tensor* part =
            step.context.d_inputs.emplace_back(draft_.add_loose(total.spec, now, draft_.fast() ? now : draft_.end()));
        step.sums.push_back({total.tensor, part});
        continue;
      }
      step.context.d_inputs.push_back(total.tensor);
      if (k == 0 && may_overwrite_output_gradient(i))
        draft_.share_buffer(total, gradient(nodes_[i].outputs[0]).buffer);
      else if (may_overwrite_input(i, k))
        draft_.share_buffer(total, draft_.value(inputs[k]).backward_buffer());
      else
        draft_.own_buffer(total, now);
    }
    draft_.backward_node.push_back(i);
    plan_.backward.push_back(std::move(step));
  }

  bool may_overwrite_output_gradient(int i) {
    const auto& [traits, inputs, outputs] = std::tie(nodes_[i].traits, nodes_[i].inputs, nodes_[i].outputs);
    if (!draft_.fast() || !(traits.view || traits.backward_in_place) || !is_reached(outputs[0])) return false;
    const PlannedValue& d_output = gradient(outputs[0]);
    return d_output.spec.bytes() == draft_.planned(inputs[0].spec()).bytes() &&
           draft_.buffers[d_output.buffer].last <= draft_.backward_step(i);
  }

  bool may_overwrite_input(int i, int k) const {
    if (!draft_.fast() || k != nodes_[i].traits.gradient_over_input) return false;
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const int buffer = draft_.value(inputs[k]).backward_buffer();
    return buffer != PlannedValue::kNone && draft_.buffers[buffer].last <= draft_.backward_step(i) &&
           std::ranges::count(inputs, buffer,
                              [&](const Output& input) { return draft_.value(input).backward_buffer(); }) == 1;
  }

  PlanDraft& draft_;
  Plan& plan_;
  const std::vector<SelectedNode>& nodes_;
};

}  // namespace

void lay_out_backward(PlanDraft& draft) { BackwardLayout(draft).lay_out(); }

}  // namespace miniqat
