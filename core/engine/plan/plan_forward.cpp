#include "core/engine/plan/plan_forward.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "core/error.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/random.h"

namespace miniqat {
namespace {

class ForwardLayout {
 public:
  explicit ForwardLayout(PlanDraft& draft) : draft_(draft), plan_(*draft.plan), nodes_(draft.nodes) {}

  void lay_out(int i) {
    const SelectedNode& selected = nodes_[i];
    Plan::ForwardStep step{.node = selected.node,
                           .op = selected.op,
                           .members = selected.members,
                           .member_inputs = selected.member_inputs,
                           .inputs = selected.inputs,
                           .outputs = selected.outputs,
                           .name_hash = hash_text(selected.node->name()),
                           .context = {}};
    for (const Output& input : selected.inputs) step.context.inputs.push_back(draft_.value(input).tensor);
    for (std::size_t k = 0; k < selected.outputs.size(); ++k)
      step.context.outputs.push_back(left_out(i, static_cast<int>(k)) ? nullptr
                                                                      : draft_.value(selected.outputs[k]).tensor);
    static_cast<Phase&>(step.context) = phase_of(draft_.request);
    stage_updates(i, step.context);
    if (bind(i)) return;
    place_outputs(i);
    place_saved(i, step.context);
    place_packed(i, step.context);
    observations_.push_back(observations_of(i));
    draft_.forward_of[i] = static_cast<int>(plan_.forward.size());
    plan_.forward.push_back(std::move(step));
  }

  /// Once all nodes are laid out.
  void place_observations() {
    plan_.observed.resize(std::accumulate(observations_.begin(), observations_.end(), std::size_t{0}));
    std::span<ShardStatistic> left = plan_.observed;
    for (std::size_t k = 0; k < plan_.forward.size(); ++k) {
      plan_.forward[k].context.observed = left.first(observations_[k]);
      left = left.subspan(observations_[k]);
    }
  }

 private:
  /// An output that forward can do without, and nobody reads.
  bool left_out(int i, int output) const {
    const std::vector<int>& optional = nodes_[i].traits.optional_outputs;
    return draft_.fast() && std::ranges::find(optional, output) != optional.end() &&
           !draft_.read.contains(key_of(nodes_[i].outputs[output]));
  }

  /// Tensors that are there before the run: feeds, variables, constants. True when node i is one of them.
  bool bind(int i) {
    const Node* node = nodes_[i].node;
    if (!node->inputs().empty()) return false;
    PlannedValue& value = draft_.values.at({node, 0});
    if (node->as<Placeholder>() != nullptr) {
      plan_.placeholders.push_back({node, value.tensor});
    } else if (node->as<Variable>() != nullptr) {
      plan_.variables.push_back({node, value.tensor});
    } else {
      *value.tensor = Tensor(value.spec);
      ForwardContext context;
      context.outputs = {value.tensor};
      node->op().reference_forward(context);
    }
    return true;
  }

  void place_outputs(int i) {
    const auto& [traits, inputs, outputs] = std::tie(nodes_[i].traits, nodes_[i].inputs, nodes_[i].outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (left_out(i, static_cast<int>(k))) continue;
      PlannedValue& out = draft_.value(outputs[k]);
      if (k == 0 && draft_.fast() && traits.view) {
        PlannedValue& in = draft_.value(inputs[0]);
        if (in.buffer == PlannedValue::kNone)
          plan_.bound_views.push_back({out.tensor, in.tensor, out.spec.shape});
        else
          draft_.share_buffer(out, in.buffer);
      } else if (k == 0 && draft_.fast() && traits.forward_in_place && may_overwrite_input(i)) {
        draft_.share_buffer(out, draft_.value(inputs[0]).buffer);
      } else {
        draft_.own_buffer(out, i);
      }
    }
  }

  /// Node i is the last to read what its input 0 lives in, and reads it through no other shape.
  bool may_overwrite_input(int i) const {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const PlannedValue& in = draft_.value(inputs[0]);
    if (in.buffer == PlannedValue::kNone || draft_.buffers[in.buffer].last > i ||
        in.spec.bytes() != draft_.value(nodes_[i].outputs[0]).spec.bytes())
      return false;
    return std::ranges::all_of(
        inputs, [&](const Output& other) { return other == inputs[0] || draft_.value(other).buffer != in.buffer; });
  }

  void place_saved(int i, ForwardContext& context) {
    if (!draft_.fast() || !draft_.flow.runs_backward[i]) return;
    for (const TensorSpec& spec : saved_by(*nodes_[i].op, nodes_[i].input_specs()))
      context.saved.push_back(draft_.add_loose(spec, i, draft_.backward_step(i)));
  }

  void place_packed(int i, ForwardContext& context) {
    const PlannedValue& out = draft_.value(nodes_[i].outputs[0]);
    if (out.unpacked_buffer == PlannedValue::kNone) return;
    const TensorSpec spec = *packed_output_of(*nodes_[i].op, nodes_[i].input_specs(), phase_of(draft_.request));
    const int unpacked_in = draft_.buffers[out.unpacked_buffer].first;
    context.packed = draft_.add_loose(spec, i, unpacked_in);
    draft_.packed_by_step[unpacked_in].push_back(i);
  }

  std::size_t observations_of(int i) const {
    const auto* observes = as<ObservesBatch>(*nodes_[i].op);
    const Phase phase = phase_of(draft_.request);
    return observes != nullptr && draft_.request.slice ? observes->observations(nodes_[i].input_specs(), phase) : 0;
  }

  void stage_updates(int i, ForwardContext& context) {
    const Node* node = nodes_[i].node;
    const bool observed = observations_of(i) > 0;
    const auto stage = [&](const std::string& name, const TensorSpec& spec) {
      if (!staged_names_.insert(name).second)
        fail(describe(*node), " updates \"", name, "\", which another node updates already");
      return &plan_.staged.emplace_back(Plan::Staged{.variable = name, .tensor = Tensor(spec), .observed = observed})
                  .tensor;
    };
    const std::vector<int> updated = nodes_[i].updated_inputs(phase_of(draft_.request));
    if (draft_.request.slice && !updated.empty() && !observed)
      fail(describe(*node), " updates variables while training; it does not say what becomes of a batch in slices");
    if (!updated.empty()) context.updates.resize(nodes_[i].inputs.size());
    for (const int k : updated) {
      const Node* source = nodes_[i].inputs[k].node;
      if (source->as<Variable>() == nullptr)
        fail(describe(*node), " updates input ", k,
             " while training, so it must come straight from a Variable, not from ", describe(*source));
      context.updates[k] = stage(source->name(), draft_.planned(source->output_specs()[0]));
    }
    for (const OpState& state : state_of(*nodes_[i].op))
      context.state.push_back(stage(state_name(*node, state), draft_.planned({state.shape})));
  }

  PlanDraft& draft_;
  Plan& plan_;
  const std::vector<SelectedNode>& nodes_;
  std::set<std::string> staged_names_;
  /// By place in plan_.forward.
  std::vector<std::size_t> observations_;
};

}  // namespace

void lay_out_forward(PlanDraft& draft) {
  ForwardLayout layout(draft);
  for (int i = 0; i < draft.count(); ++i) layout.lay_out(i);
  layout.place_observations();
}

}  // namespace miniqat
