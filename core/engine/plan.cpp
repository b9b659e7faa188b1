#include "core/engine/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/engine/arena.h"
#include "core/engine/plan_gradients.h"
#include "core/engine/plan_selection.h"
#include "core/engine/planned_value.h"
#include "core/error.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/guarded_memory.h"
#include "core/random.h"

namespace miniqat {
namespace {

using Value = PlannedValue;
constexpr int kNone = Value::kNone;

/// Tensors of fewer bytes are not worth the work of packing them.
constexpr std::size_t kWorthPacking = std::size_t{1} << 18;

/// Compiles one request. Steps are numbered: node i of n runs forward in step i and backward in step 2n-1-i.
class Compiler {
 public:
  Compiler(const Graph& graph, const PlanRequest& request) : graph_(graph), request_(request) {}

  std::unique_ptr<Plan> compile() {
    select();
    flow_ = gradient_flow(nodes_, request_);
    note_reads();
    choose_packing();
    lay_out_forward();
    lay_out_gradients();
    place();
    return std::move(plan_);
  }

 private:
  int count() const { return static_cast<int>(nodes_.size()); }
  int backward_step(int i) const { return 2 * count() - 1 - i; }
  int end() const { return 2 * count(); }
  bool fast() const { return request_.backend == Backend::kFast; }

  TensorSpec planned(const TensorSpec& spec) const {
    return {spec.shape, spec.dtype == DType::kFloat32 ? request_.precision : spec.dtype};
  }

  /// Dead code falls away here: only what the request needs is kept.
  void select() {
    nodes_ = select_nodes(graph_, request_);
    for (int i = 0; i < count(); ++i) {
      const SelectedNode& selected = nodes_[i];
      if (selected.fused) plan_->fused.push_back(selected.fused);
      plan_->memory.nodes += static_cast<int>(selected.members.size());
      for (const Output& output : selected.outputs) {
        index_[output.node] = i;
        values_[key(output)] = {.spec = planned(output.spec()), .tensor = &plan_->tensors.emplace_back()};
      }
    }
    plan_->memory.steps = count();
    plan_->memory.dropped_nodes = static_cast<int>(graph_.size()) - plan_->memory.nodes;
  }

  using Key = TensorKey;
  static Key key(Output output) { return key_of(output); }
  Value& value(Output output) { return values_.at(key(output)); }

  void note_reads() {
    const auto keep = [this](Output output, int step) {
      Value& kept = value(output);
      kept.last_read = std::max(kept.last_read, step);
      if (step < count())
        kept.last_forward_read = std::max(kept.last_forward_read, step);
      else if (kept.first_backward_read == kNone || step < kept.first_backward_read)
        kept.first_backward_read = step;
    };
    const auto read = [&](Output output, int step) {
      keep(output, step);
      read_.insert(key(output));
    };
    for (int i = 0; i < count(); ++i) {
      const SelectedNode& selected = nodes_[i];
      for (const Output& output : selected.outputs) keep(output, fast() ? i : end());
      for (const Output& input : selected.inputs) read(input, i);
      if (!flow_.runs_backward[i]) continue;
      for (const int k : selected.traits.backward_inputs) read(selected.inputs[k], backward_step(i));
      for (const int k : selected.traits.backward_outputs) read(selected.outputs[k], backward_step(i));
    }
    for (const Output& fetch : request_.fetches) read(fetch, end());
    if (request_.gradients_of) read(*request_.gradients_of, 0);
  }

  /// Outputs that rest between their last use in forward and their first in backward, and that their op can pack. (In
  /// training only: there a NaN makes the whole tensor NaN, of which nothing is lost. Bytes have no NaN.)
  void choose_packing() {
    if (!fast() || !request_.training) return;
    for (int i = 0; i < count(); ++i) {
      const SelectedNode& selected = nodes_[i];
      Value& out = value(selected.outputs[0]);
      const bool rests = out.first_backward_read != kNone && out.last_read < end();
      if (!rests || !selected.quantizing || out.spec.bytes() < kWorthPacking || is_viewed(selected.outputs[0]) ||
          !packed_output_of(*selected.op, selected.input_specs()))
        continue;
      out.unpacked_buffer = new_buffer(out.spec.bytes(), out.first_backward_read, out.last_read);
      out.last_read = out.last_forward_read;
    }
  }

  /// Some node gives the same memory another shape.
  bool is_viewed(const Output& output) const {
    return std::ranges::any_of(
        nodes_, [&](const SelectedNode& selected) { return selected.traits.view && selected.inputs[0] == output; });
  }

  int new_buffer(std::size_t bytes, int first, int last) {
    buffers_.push_back({bytes, first, last});
    return static_cast<int>(buffers_.size()) - 1;
  }

  /// Gives `value` a buffer of its own from step `first` on.
  void own_buffer(Value& value, int first) { value.buffer = new_buffer(value.spec.bytes(), first, value.last_read); }

  void share_buffer(Value& value, int buffer) {
    value.buffer = buffer;
    buffers_[buffer].last = std::max(buffers_[buffer].last, value.last_read);
  }

  void lay_out_forward() {
    for (int i = 0; i < count(); ++i) {
      Plan::ForwardStep step{.node = nodes_[i].node,
                             .op = nodes_[i].op,
                             .members = nodes_[i].members,
                             .member_inputs = nodes_[i].member_inputs,
                             .inputs = nodes_[i].inputs,
                             .outputs = nodes_[i].outputs,
                             .name_hash = hash_text(nodes_[i].node->name()),
                             .context = {}};
      for (const Output& input : nodes_[i].inputs) step.context.inputs.push_back(value(input).tensor);
      for (std::size_t k = 0; k < nodes_[i].outputs.size(); ++k)
        step.context.outputs.push_back(left_out(i, static_cast<int>(k)) ? nullptr : value(nodes_[i].outputs[k]).tensor);
      step.context.training = request_.training;
      step.context.quantizing = nodes_[i].quantizing;
      step.context.frozen = nodes_[i].frozen;
      stage_updates(i, step.context);
      if (!bind(i)) {
        place_outputs(i);
        place_saved(i, step.context);
        place_packed(i, step.context);
        forward_of_[i] = static_cast<int>(plan_->forward.size());
        plan_->forward.push_back(std::move(step));
      }
    }
  }

  /// An output that forward can do without, and nobody reads.
  bool left_out(int i, int output) const {
    const std::vector<int>& optional = nodes_[i].traits.optional_outputs;
    return fast() && std::ranges::find(optional, output) != optional.end() &&
           !read_.contains(key(nodes_[i].outputs[output]));
  }

  /// Tensors that are there before the run: feeds, variables, constants. True when node i is one of them.
  bool bind(int i) {
    const Node* node = nodes_[i].node;
    if (!node->inputs().empty()) return false;
    Value& value = values_.at({node, 0});
    if (node->as<Placeholder>() != nullptr) {
      plan_->placeholders.push_back({node, value.tensor});
    } else if (node->as<Variable>() != nullptr) {
      plan_->variables.push_back({node, value.tensor});
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
      Value& out = value(outputs[k]);
      if (k == 0 && fast() && traits.view) {
        Value& in = value(inputs[0]);
        if (in.buffer == kNone)
          plan_->bound_views.push_back({out.tensor, in.tensor, out.spec.shape});
        else
          share_buffer(out, in.buffer);
      } else if (k == 0 && fast() && traits.forward_in_place && may_overwrite_input(i)) {
        share_buffer(out, value(inputs[0]).buffer);
      } else {
        own_buffer(out, i);
      }
    }
  }

  /// Node i is the last to read what its input 0 lives in, and reads it through no other shape.
  bool may_overwrite_input(int i) {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const Value& in = value(inputs[0]);
    if (in.buffer == kNone || buffers_[in.buffer].last > i ||
        in.spec.bytes() != value(nodes_[i].outputs[0]).spec.bytes())
      return false;
    return std::ranges::all_of(
        inputs, [&](const Output& other) { return other == inputs[0] || value(other).buffer != in.buffer; });
  }

  void place_saved(int i, ForwardContext& context) {
    if (!fast() || !flow_.runs_backward[i]) return;
    for (const TensorSpec& spec : saved_by(*nodes_[i].op, nodes_[i].input_specs())) {
      Tensor* tensor = &plan_->tensors.emplace_back();
      context.saved.push_back(tensor);
      loose_.push_back({.spec = spec, .buffer = new_buffer(spec.bytes(), i, backward_step(i)), .tensor = tensor});
    }
  }

  void place_packed(int i, ForwardContext& context) {
    const Value& out = value(nodes_[i].outputs[0]);
    if (out.unpacked_buffer == kNone) return;
    const TensorSpec spec = *packed_output_of(*nodes_[i].op, nodes_[i].input_specs());
    context.packed = &plan_->tensors.emplace_back();
    loose_.push_back({.spec = spec,
                      .buffer = new_buffer(spec.bytes(), i, buffers_[out.unpacked_buffer].first),
                      .tensor = context.packed});
    packed_by_step_[buffers_[out.unpacked_buffer].first].push_back(i);
  }

  void stage_updates(int i, ForwardContext& context) {
    const Node* node = nodes_[i].node;
    const auto stage = [&](const std::string& name, const TensorSpec& spec) {
      if (!staged_names_.insert(name).second)
        fail(describe(*node), " updates \"", name, "\", which another node updates already");
      return &plan_->staged.emplace_back(Plan::Staged{.variable = name, .tensor = Tensor(spec)}).tensor;
    };
    if (request_.training)
      for (const int k : nodes_[i].updated_inputs()) {
        const Node* source = nodes_[i].inputs[k].node;
        if (source->as<Variable>() == nullptr)
          fail(describe(*node), " updates input ", k,
               " while training, so it must come straight from a Variable, not from ", describe(*source));
        context.updates.push_back(stage(source->name(), planned(source->output_specs()[0])));
      }
    for (const OpState& state : state_of(*nodes_[i].op))
      context.state.push_back(stage(state_name(*node, state), planned({state.shape})));
  }

  /// Gradients get memory in the order of the backward sweep.
  void lay_out_gradients() {
    if (!request_.gradients_of || flow_.reached.empty()) {
      plan_->gradients.assign(request_.gradient_targets.size(), nullptr);
      return;
    }
    Value& seed = gradient(*request_.gradients_of);
    own_buffer(seed, count());
    plan_->seed = seed.tensor;
    for (int i = count() - 1; i >= 0; --i)
      if (flow_.runs_backward[i]) lay_out_backward(i);
    for (const Output& target : request_.gradient_targets)
      plan_->gradients.push_back(flow_.reached.contains(key(target)) ? gradient(target).tensor : nullptr);
  }

  Value& gradient(Output output) {
    const auto [found, fresh] = gradients_.try_emplace(key(output));
    if (fresh) {
      const int i = index_.at(output.node);
      const bool target = std::ranges::find(request_.gradient_targets, output) != request_.gradient_targets.end();
      found->second = {.spec = planned(output.spec()),
                       .last_read = !fast() || target || !flow_.runs_backward[i] ? end() : backward_step(i),
                       .tensor = &plan_->tensors.emplace_back()};
    }
    return found->second;
  }

  void lay_out_backward(int i) {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    Plan::BackwardStep step{.node = nodes_[i].node, .op = nodes_[i].op, .context = {}, .sums = {}, .unpacks = {}};
    for (const Output& output : nodes_[i].outputs)
      step.context.d_outputs.push_back(flow_.reached.contains(key(output)) ? gradient(output).tensor : nullptr);
    for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
      if (!flow_.inputs.contains({i, k})) {
        step.context.d_inputs.push_back(nullptr);
        continue;
      }
      Value& total = gradient(inputs[k]);
      if (total.buffer != kNone) {
        Tensor* part = &plan_->tensors.emplace_back();
        const int last = fast() ? backward_step(i) : end();
        loose_.push_back(
            {.spec = total.spec, .buffer = new_buffer(total.spec.bytes(), backward_step(i), last), .tensor = part});
        step.context.d_inputs.push_back(part);
        step.sums.push_back({total.tensor, part});
        continue;
      }
      step.context.d_inputs.push_back(total.tensor);
      if (k == 0 && gradient_may_overwrite(i))
        share_buffer(total, gradient(nodes_[i].outputs[0]).buffer);
      else if (gradient_may_overwrite_input(i, k))
        share_buffer(total, value(inputs[k]).backward_buffer());
      else
        own_buffer(total, backward_step(i));
    }
    backward_node_.push_back(i);
    plan_->backward.push_back(std::move(step));
  }

  bool gradient_may_overwrite(int i) {
    const auto& [traits, inputs, outputs] = std::tie(nodes_[i].traits, nodes_[i].inputs, nodes_[i].outputs);
    if (!fast() || !(traits.view || traits.backward_in_place) || !flow_.reached.contains(key(outputs[0]))) return false;
    const Value& d_output = gradient(outputs[0]);
    return d_output.spec.bytes() == planned(inputs[0].spec()).bytes() &&
           buffers_[d_output.buffer].last <= backward_step(i);
  }

  bool gradient_may_overwrite_input(int i, int k) {
    if (!fast() || k != nodes_[i].traits.gradient_over_input) return false;
    const std::vector<Output>& inputs = nodes_[i].inputs;
    const int buffer = value(inputs[k]).backward_buffer();
    return buffer != kNone && buffers_[buffer].last <= backward_step(i) &&
           std::ranges::count_if(inputs,
                                 [&](const Output& input) { return value(input).backward_buffer() == buffer; }) == 1;
  }

  /// Lays out the arena and hands every tensor its address.
  void place() {
    const ArenaLayout layout = place_in_arena(buffers_);
    if (layout.bytes > static_cast<std::size_t>(Shape::kMaxElements) * sizeof(double))
      fail("the graph's activations would take ", layout.bytes, " bytes");
    plan_->memory.arena = layout.bytes;
    if (is_guarding())
      for (const Lifetime& buffer : buffers_)
        plan_->stretches.emplace_back(Shape{static_cast<std::int64_t>(buffer.bytes)}, DType::kUInt8);
    else
      plan_->arena = Tensor(Shape{static_cast<std::int64_t>((layout.bytes + 7) / 8)}, DType::kInt64);
    const auto view = [&](int buffer, const TensorSpec& spec) {
      return Tensor::view(is_guarding() ? plan_->stretches[buffer].raw()
                                        : static_cast<std::byte*>(plan_->arena.raw()) + layout.offsets[buffer],
                          spec);
    };
    const auto address = [&](const Value& value) {
      if (value.buffer == kNone) return;
      *value.tensor = view(value.buffer, value.spec);
      plan_->memory.unshared += value.spec.bytes();
    };
    for (const auto& [name, value] : values_) address(value);
    for (const auto& [name, value] : gradients_) address(value);
    for (const Value& value : loose_) address(value);
    const auto forward_context = [&](int i) { return &plan_->forward[forward_of_.at(i)].context; };
    for (std::size_t k = 0; k < plan_->backward.size(); ++k) {
      Plan::BackwardStep& step = plan_->backward[k];
      step.context.forward = forward_context(backward_node_[k]);
      for (const int i : packed_by_step_[backward_step(backward_node_[k])]) {
        const Value& out = value(nodes_[i].outputs[0]);
        step.unpacks.push_back(&plan_->packed.emplace_back(Plan::Packed{
            nodes_[i].op, forward_context(i), out.tensor, *out.tensor, view(out.unpacked_buffer, out.spec)}));
      }
    }
    for (const Output& fetch : request_.fetches) plan_->fetches.push_back(value(fetch).tensor);
  }

  const Graph& graph_;
  const PlanRequest& request_;
  std::unique_ptr<Plan> plan_ = std::make_unique<Plan>();

  std::vector<SelectedNode> nodes_;
  std::unordered_map<const Node*, int> index_;
  std::map<Key, Value> values_;
  std::map<Key, Value> gradients_;
  /// Saved tensors and parts of gradients.
  std::vector<Value> loose_;
  std::vector<Lifetime> buffers_;

  GradientFlow flow_;
  /// Tensors that some node, fetch or gradient takes.
  std::set<Key> read_;
  std::unordered_map<int, int> forward_of_;
  std::vector<int> backward_node_;
  /// The nodes whose output 0 has to be unpacked before a step.
  std::map<int, std::vector<int>> packed_by_step_;
  std::set<std::string> staged_names_;
};

}  // namespace

std::unique_ptr<Plan> compile_plan(const Graph& graph, const PlanRequest& request) {
  return Compiler(graph, request).compile();
}

}  // namespace miniqat
