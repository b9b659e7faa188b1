#include "core/engine/plan/plan.h"

#include <algorithm>
#include <set>

#include "core/engine/plan/passes.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/memory/guarded_memory.h"
#include "core/tensors/coded.h"
#include "core/tensors/random.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

/// Writes the plan, all decisions being made: memory, the tensors in it, the steps.
class PlanWriter {
 public:
  PlanWriter(const SelectedNodes& nodes, const Packing& packing, const Placement& placed, const ArenaLayout& layout,
             const PlanRequest& request)
      : nodes_(nodes), packing_(packing), placed_(placed), layout_(layout), request_(request) {
    allocate();
    for (const auto& [key, stretch] : placed.values) values_[key] = place_of(key, stretch);
    for (const auto& [key, stretch] : placed.gradients) gradients_[key] = new_tensor(stretch, spec_of(key));
    for (const SelectedNode& selected : nodes) {
      if (selected.fused) plan_->fused.push_back(selected.fused);
      plan_->memory.nodes += static_cast<int>(selected.members.size());
    }
    plan_->memory.steps = static_cast<int>(nodes.size());
  }

  std::unique_ptr<Plan> write(const GradientFlow& flow, const TensorLives& lives) {
    const int count = static_cast<int>(nodes_.size());
    for (int i = 0; i < count; ++i) nodes_[i].node->inputs().empty() ? write_source(i) : write_forward(i);
    place_observations();
    for (const auto& [i, stretch] : placed_.packed) {
      const TensorLife& life = lives.at(key_of(nodes_[i].outputs[0]));
      if (life.rests_packed) unpacks_[life.first_backward_read].push_back(i);
    }
    for (int i = count - 1; i >= 0; --i)
      if (flow.runs_backward[i]) write_backward(i, flow);
    for (const Output& fetch : request_.fetches) plan_->fetches.push_back(value(fetch));
    if (!flow.reached.empty()) plan_->seed = gradient(*request_.gradients_of);
    for (const Output& target : request_.gradient_targets) plan_->gradients.push_back(gradient(target));
    return std::move(plan_);
  }

 private:
  TensorSpec spec_of(const TensorKey& key) const {
    return planned(key.first->output_specs()[static_cast<std::size_t>(key.second)], request_);
  }

  void allocate() {
    if (layout_.bytes > static_cast<std::size_t>(Shape::kMaxElements) * sizeof(double))
      fail("the graph's activations would take ", layout_.bytes, " bytes");
    plan_->memory.arena = layout_.bytes;
    if (is_guarding())
      for (const Lifetime& stretch : placed_.stretches)
        plan_->stretches.emplace_back(Shape{static_cast<std::int64_t>(stretch.bytes)}, DType::kUInt8);
    else
      plan_->arena = Tensor(Shape{static_cast<std::int64_t>((layout_.bytes + 7) / 8)}, DType::kInt64);
  }

  Tensor* place_of(const TensorKey& key, int stretch) {
    if (stretch == Placement::kBound) return &plan_->tensors.emplace_back();
    if (stretch == Placement::kNowhere) return &plan_->tensors.emplace_back(Tensor::view(nullptr, spec_of(key)));
    return new_tensor(stretch, spec_of(key));
  }

  Tensor view(int stretch, const TensorSpec& spec) {
    return Tensor::view(is_guarding() ? plan_->stretches[stretch].raw()
                                      : static_cast<std::byte*>(plan_->arena.raw()) + layout_.offsets[stretch],
                        spec);
  }

  Tensor* new_tensor(int stretch, const TensorSpec& spec) {
    plan_->memory.unshared += spec.bytes();
    return &plan_->tensors.emplace_back(view(stretch, spec));
  }

  /// Null for an output that forward leaves out.
  Tensor* value(const Output& output) const {
    const auto found = values_.find(key_of(output));
    return found != values_.end() ? found->second : nullptr;
  }
  /// Null for a tensor that the gradient does not reach.
  Tensor* gradient(const Output& output) const {
    const auto found = gradients_.find(key_of(output));
    return found != gradients_.end() ? found->second : nullptr;
  }

  /// A tensor that is there before the run: a feed, a variable, a constant.
  void write_source(int i) {
    const Node& node = *nodes_[i].node;
    Tensor* tensor = value(node.output());
    if (node.as<Placeholder>() != nullptr) {
      Tensor* codes = nullptr;
      if (placed_.packed.contains(i))
        packed_[{&node, 0}] = codes = &plan_->tensors.emplace_back(packing_.forms.at({&node, 0}).spec());
      plan_->placeholders.push_back({&node, tensor, codes});
    } else if (node.as<Variable>() != nullptr) {
      plan_->variables.push_back({&node, tensor});
    } else {
      *tensor = Tensor(spec_of({&node, 0}));
      ForwardContext context;
      context.outputs = {tensor};
      node.op().reference_forward(context);
    }
  }

  void write_forward(int i) {
    const SelectedNode& selected = nodes_[i];
    Plan::ForwardStep step{.node = selected.node,
                           .op = selected.op,
                           .type = concat(selected.op->type(), packing_.readers.contains(i) ? kOfIntegers : ""),
                           .members = selected.members,
                           .member_inputs = selected.member_inputs,
                           .inputs = selected.inputs,
                           .outputs = selected.outputs,
                           .name_hash = hash_text(selected.node->name()),
                           .context = {}};
    ForwardContext& context = step.context;
    static_cast<Phase&>(context) = phase_of(request_);
    for (const Output& input : selected.inputs) context.inputs.push_back(value(input));
    for (const Output& output : selected.outputs) context.outputs.push_back(value(output));
    const Output& first = selected.outputs[0];
    if (const auto place = placed_.values.find(key_of(first));
        place != placed_.values.end() && place->second == Placement::kBound)
      plan_->bound_views.push_back({value(first), value(selected.inputs[0]), first.shape()});
    stage_updates(i, context);
    if (const auto saved = placed_.saved.find(i); saved != placed_.saved.end()) {
      const std::vector<TensorSpec> specs = saved_by(*selected.op, selected.input_specs());
      for (std::size_t k = 0; k < specs.size(); ++k) context.saved.push_back(new_tensor(saved->second[k], specs[k]));
    }
    if (const auto packed = placed_.packed.find(i); packed != placed_.packed.end()) {
      step.packed_form = packing_.forms.at(key_of(first));
      packed_[key_of(first)] = context.packed = new_tensor(packed->second, step.packed_form.spec());
    }
    if (packing_.rounds.contains(i)) context.rounding = request_.rounding;
    if (packing_.readers.contains(i))
      for (const Output& input : selected.inputs) {
        context.packed_inputs.push_back(packed_.at(packing_.root_of(input)));
        context.packed_forms.push_back(packing_.forms.at(packing_.root_of(input)));
      }
    forward_of_[i] = plan_->forward.size();
    plan_->forward.push_back(std::move(step));
  }

  std::size_t observations_of(int i) const {
    const auto* observes = as<ObservesBatch>(*nodes_[i].op);
    return observes != nullptr && request_.slice ? observes->observations(nodes_[i].input_specs(), phase_of(request_))
                                                 : 0;
  }

  /// Once all steps of forward are there.
  void place_observations() {
    std::size_t count = 0;
    for (const auto& [i, place] : forward_of_) count += observations_of(i);
    plan_->observed.resize(count);
    std::span<ShardStatistic> left = plan_->observed;
    for (const auto& [i, place] : forward_of_) {
      plan_->forward[place].context.observed = left.first(observations_of(i));
      left = left.subspan(observations_of(i));
    }
  }

  void stage_updates(int i, ForwardContext& context) {
    const SelectedNode& selected = nodes_[i];
    const Node* node = selected.node;
    const bool observed = observations_of(i) > 0;
    const auto stage = [&](const std::string& name, const TensorSpec& spec) {
      if (!staged_names_.insert(name).second)
        fail(describe(*node), " updates \"", name, "\", which another node updates already");
      return &plan_->staged.emplace_back(Plan::Staged{.variable = name, .tensor = Tensor(spec), .observed = observed})
                  .tensor;
    };
    const std::vector<int> updated = selected.updated_inputs(phase_of(request_));
    if (request_.slice && !updated.empty() && !observed)
      fail(describe(*node), " updates variables while training; it does not say what becomes of a batch in slices");
    if (!updated.empty()) context.updates.resize(selected.inputs.size());
    for (const int k : updated) {
      const Node* source = selected.inputs[k].node;
      if (source->as<Variable>() == nullptr)
        fail(describe(*node), " updates input ", k,
             " while training, so it must come straight from a Variable, not from ", describe(*source));
      context.updates[k] = stage(source->name(), spec_of({source, 0}));
    }
    for (const OpState& state : state_of(*selected.op))
      context.state.push_back(stage(state_name(*node, state), planned({state.shape}, request_)));
  }

  void write_backward(int i, const GradientFlow& flow) {
    const SelectedNode& selected = nodes_[i];
    Plan::BackwardStep step{.node = selected.node, .op = selected.op, .context = {}, .sums = {}, .unpacks = {}};
    step.context.forward = context_of(i);
    for (const Output& output : selected.outputs) step.context.d_outputs.push_back(gradient(output));
    for (int k = 0; k < static_cast<int>(selected.inputs.size()); ++k) {
      const Output& input = selected.inputs[k];
      Tensor* d_input = flow.inputs.contains({i, k}) ? gradient(input) : nullptr;
      if (const auto part = placed_.gradient_parts.find({i, k}); part != placed_.gradient_parts.end()) {
        Tensor* total = d_input;
        d_input = new_tensor(part->second, total->spec());
        step.sums.push_back({total, d_input});
      }
      step.context.d_inputs.push_back(d_input);
    }
    for (const int packed : unpacks_[backward_step(nodes_, i)]) step.unpacks.push_back(write_unpack(packed));
    plan_->backward.push_back(std::move(step));
  }

  const Plan::Packed* write_unpack(int i) {
    const TensorKey key = key_of(nodes_[i].outputs[0]);
    std::vector<Tensor*> tensors = {values_.at(key)};
    for (const auto& [view, root] : packing_.roots)
      if (root == key) tensors.push_back(values_.at(view));
    const Tensor& tensor = *tensors.front();
    return &plan_->packed.emplace_back(Plan::Packed{.form = packing_.forms.at(key),
                                                    .bytes = packed_.at(key),
                                                    .tensors = tensors,
                                                    .forward_place = tensor,
                                                    .backward_place = view(placed_.unpacked.at(key), tensor.spec())});
  }

  const ForwardContext* context_of(int i) const { return &plan_->forward[forward_of_.at(i)].context; }

  const SelectedNodes& nodes_;
  const Packing& packing_;
  const Placement& placed_;
  const ArenaLayout& layout_;
  const PlanRequest& request_;
  std::unique_ptr<Plan> plan_ = std::make_unique<Plan>();
  std::map<TensorKey, Tensor*> values_;
  std::map<TensorKey, Tensor*> gradients_;
  std::set<std::string> staged_names_;
  /// The place of node i in plan_->forward.
  std::map<int, std::size_t> forward_of_;
  /// The bytes of packed tensors.
  std::map<TensorKey, Tensor*> packed_;
  /// The nodes whose output 0 has to be unpacked before a step.
  std::map<int, std::vector<int>> unpacks_;
};

}  // namespace

void Plan::Packed::move_to(const Tensor& place) const {
  for (Tensor* tensor : tensors) *tensor = Tensor::view(const_cast<void*>(place.raw()), tensor->spec());
}

TensorSpec planned(const TensorSpec& spec, const PlanRequest& request) {
  return {spec.shape, spec.dtype == DType::kFloat32 ? request.precision : spec.dtype};
}

Phase phase_of(const PlanRequest& request) { return {request.training, request.quantization_step}; }

std::unique_ptr<Plan> compile_plan(const Graph& graph, const PlanRequest& request) {
  const SelectedNodes nodes = fuse_nodes(select_nodes(graph, request), request);
  const GradientFlow flow = gradient_flow(nodes, request);
  const Packing packing = choose_packing(nodes, request);
  const TensorLives lives = tensor_lives(nodes, flow, packing, request);
  const Placement placed = place_tensors(nodes, flow, packing, lives, request);
  const ArenaLayout layout = place_in_arena(placed.stretches);
  std::unique_ptr<Plan> plan = PlanWriter(nodes, packing, placed, layout, request).write(flow, lives);
  plan->memory.dropped_nodes = static_cast<int>(graph.size()) - plan->memory.nodes;
  return plan;
}

Delays::Delays(const Graph& graph) {
  std::set<std::int64_t> steps;
  for (const Node* node : graph.nodes())
    for (const std::int64_t delay : delays_of(node->op())) steps.insert(delay);
  steps_.assign(steps.begin(), steps.end());
}

std::int64_t Delays::passed(std::int64_t quantization_step) const {
  return std::ranges::upper_bound(steps_, quantization_step) - steps_.begin();
}

std::string plan_key(const Delays& delays, const PlanRequest& request) {
  std::string text = request.training ? "training" : "inference";
  if (request.slice) text += ",slice";
  for (const Output& fetch : request.fetches) text += " " + fetch.name();
  // No node's name holds a comma, so that nothing here can be taken for a fetch.
  if (request.gradients_of) text += ",d " + request.gradients_of->name();
  for (const Output& target : request.gradient_targets) text += ",/ " + target.name();
  for (const Output& placeholder : request.coded) text += ",bytes " + placeholder.name();
  return text + concat(",after ", delays.passed(request.quantization_step), " delays");
}

}  // namespace miniqat
