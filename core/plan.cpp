#include "core/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/arena.h"
#include "core/error.h"
#include "core/plan_selection.h"
#include "core/random.h"
#include "core/source_ops.h"

namespace miniqat {
namespace {

constexpr int kNone = -1;

/// A tensor of the graph, or the gradient of one, on its way to an address.
struct Value {
  TensorSpec spec;
  /// The stretch of memory it lives in; kNone for tensors that the session binds and for constants.
  int buffer = kNone;
  /// The last step that reads it, apart from other values in the same buffer.
  int last_read = 0;
  /// The address; the Tensor's own memory is known once the arena is laid out.
  Tensor* tensor = nullptr;
};

/// Compiles one request. Steps are numbered: node i of n runs forward in step i and backward in step 2n-1-i.
class Compiler {
 public:
  Compiler(const Graph& graph, const PlanRequest& request) : graph_(graph), request_(request) {}

  std::unique_ptr<Plan> compile() {
    check_request();
    select();
    find_backward_nodes();
    note_reads();
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

  void check_request() const {
    const auto require = [this](Output output) {
      if (output.node == nullptr || graph_.find(output.node->name()) != output.node)
        fail("a requested tensor is not of this graph");
      if (output.index < 0 || output.index >= static_cast<int>(output.node->output_specs().size()))
        fail(describe(*output.node), " has no output ", output.index, "; it has ", output.node->output_specs().size());
    };
    std::ranges::for_each(request_.fetches, require);
    std::ranges::for_each(request_.gradient_targets, require);
    if (request_.gradients_of) require(*request_.gradients_of);
    for (const Output& target : request_.gradient_targets)
      if (target.node->as<Variable>() == nullptr && target.node->as<Placeholder>() == nullptr)
        fail("gradients are for variables and placeholders, ", describe(*target.node), " is neither");
    if (request_.precision != DType::kFloat32 && fast()) fail("the fast backend computes in float32 only");
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

  /// Of output 0 of node i (of fused nodes the last; others of them may give further outputs).
  const Node* producer(int i) const { return nodes_[i].outputs.front().node; }

  bool differentiable(int i, int input) const {
    const std::vector<int>& none = nodes_[i].traits.no_gradient;
    return std::ranges::find(none, input) == none.end() && nodes_[i].inputs[input].spec().dtype == DType::kFloat32;
  }

  /// A node runs backward when the gradient reaches one of its outputs and somebody wants it at one of its inputs.
  void find_backward_nodes() {
    runs_backward_.assign(nodes_.size(), false);
    if (!request_.gradients_of) return;
    std::set<const Node*> wanting;
    for (const Output& target : request_.gradient_targets) wanting.insert(target.node);
    for (int i = 0; i < count(); ++i)
      for (std::size_t k = 0; k < nodes_[i].inputs.size(); ++k)
        if (takes_gradient(i, static_cast<int>(k), wanting))
          for (const Output& output : nodes_[i].outputs) wanting.insert(output.node);
    if (!wanting.contains(request_.gradients_of->node)) return;
    reached_.insert(key(*request_.gradients_of));
    for (int i = count() - 1; i >= 0; --i) {
      const SelectedNode& selected = nodes_[i];
      if (selected.inputs.empty() || !wanting.contains(producer(i))) continue;
      for (const Output& output : selected.outputs)
        runs_backward_[i] = runs_backward_[i] || reached_.contains(key(output));
      if (!runs_backward_[i]) continue;
      for (std::size_t k = 0; k < selected.inputs.size(); ++k)
        if (takes_gradient(i, static_cast<int>(k), wanting)) {
          reached_.insert(key(nodes_[i].inputs[k]));
          gradient_inputs_.insert({i, static_cast<int>(k)});
        }
    }
  }

  bool takes_gradient(int i, int input, const std::set<const Node*>& wanting) const {
    return differentiable(i, input) && wanting.contains(nodes_[i].inputs[input].node);
  }

  using Key = std::pair<const Node*, std::size_t>;
  static Key key(Output output) { return {output.node, static_cast<std::size_t>(output.index)}; }
  Value& value(Output output) { return values_.at(key(output)); }

  void note_reads() {
    const auto keep = [this](Output output, int step) {
      int& last = value(output).last_read;
      last = std::max(last, step);
    };
    const auto read = [&](Output output, int step) {
      keep(output, step);
      read_.insert(key(output));
    };
    for (int i = 0; i < count(); ++i) {
      const SelectedNode& selected = nodes_[i];
      for (const Output& output : selected.outputs) keep(output, fast() ? i : end());
      for (const Output& input : selected.inputs) read(input, i);
      if (!runs_backward_[i]) continue;
      for (const int k : selected.traits.backward_inputs) read(selected.inputs[k], backward_step(i));
      for (const int k : selected.traits.backward_outputs) read(selected.outputs[k], backward_step(i));
    }
    for (const Output& fetch : request_.fetches) read(fetch, end());
    if (request_.gradients_of) read(*request_.gradients_of, 0);
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
    if (!fast() || !runs_backward_[i]) return;
    for (const TensorSpec& spec : nodes_[i].op->saved(nodes_[i].input_specs())) {
      Tensor* tensor = &plan_->tensors.emplace_back();
      context.saved.push_back(tensor);
      loose_.push_back({spec, new_buffer(spec.bytes(), i, backward_step(i)), 0, tensor});
    }
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
    for (const OpState& state : nodes_[i].op->state())
      context.state.push_back(stage(state_name(*node, state), planned({state.shape})));
  }

  /// Gradients get memory in the order of the backward sweep.
  void lay_out_gradients() {
    if (!request_.gradients_of || reached_.empty()) {
      plan_->gradients.assign(request_.gradient_targets.size(), nullptr);
      return;
    }
    Value& seed = gradient(*request_.gradients_of);
    own_buffer(seed, count());
    plan_->seed = seed.tensor;
    for (int i = count() - 1; i >= 0; --i)
      if (runs_backward_[i]) lay_out_backward(i);
    for (const Output& target : request_.gradient_targets)
      plan_->gradients.push_back(reached_.contains(key(target)) ? gradient(target).tensor : nullptr);
  }

  Value& gradient(Output output) {
    const auto [found, fresh] = gradients_.try_emplace(key(output));
    if (fresh) {
      const int i = index_.at(output.node);
      const bool target = std::ranges::find(request_.gradient_targets, output) != request_.gradient_targets.end();
      found->second = {.spec = planned(output.spec()),
                       .last_read = !fast() || target || !runs_backward_[i] ? end() : backward_step(i),
                       .tensor = &plan_->tensors.emplace_back()};
    }
    return found->second;
  }

  void lay_out_backward(int i) {
    const std::vector<Output>& inputs = nodes_[i].inputs;
    Plan::BackwardStep step{.node = nodes_[i].node, .op = nodes_[i].op, .context = {}, .sums = {}};
    for (const Output& output : nodes_[i].outputs)
      step.context.d_outputs.push_back(reached_.contains(key(output)) ? gradient(output).tensor : nullptr);
    for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
      if (!gradient_inputs_.contains({i, k})) {
        step.context.d_inputs.push_back(nullptr);
        continue;
      }
      Value& total = gradient(inputs[k]);
      if (total.buffer != kNone) {
        Tensor* part = &plan_->tensors.emplace_back();
        loose_.push_back(
            {total.spec, new_buffer(total.spec.bytes(), backward_step(i), fast() ? backward_step(i) : end()), 0, part});
        step.context.d_inputs.push_back(part);
        step.sums.push_back({total.tensor, part});
        continue;
      }
      step.context.d_inputs.push_back(total.tensor);
      if (k == 0 && gradient_may_overwrite(i))
        share_buffer(total, gradient(nodes_[i].outputs[0]).buffer);
      else
        own_buffer(total, backward_step(i));
    }
    backward_node_.push_back(i);
    plan_->backward.push_back(std::move(step));
  }

  bool gradient_may_overwrite(int i) {
    const auto& [traits, inputs, outputs] = std::tie(nodes_[i].traits, nodes_[i].inputs, nodes_[i].outputs);
    if (!fast() || !(traits.view || traits.backward_in_place) || !reached_.contains(key(outputs[0]))) return false;
    const Value& d_output = gradient(outputs[0]);
    return d_output.spec.bytes() == planned(inputs[0].spec()).bytes() &&
           buffers_[d_output.buffer].last <= backward_step(i);
  }

  /// Lays out the arena and hands every tensor its address.
  void place() {
    const ArenaLayout layout = place_in_arena(buffers_);
    if (layout.bytes > static_cast<std::size_t>(Shape::kMaxElements) * sizeof(double))
      fail("the graph's activations would take ", layout.bytes, " bytes");
    plan_->arena = Tensor(Shape{static_cast<std::int64_t>((layout.bytes + 7) / 8)}, DType::kInt64);
    plan_->memory.arena = layout.bytes;
    const auto address = [&](const Value& value) {
      if (value.buffer == kNone) return;
      *value.tensor =
          Tensor::view(static_cast<std::byte*>(plan_->arena.raw()) + layout.offsets[value.buffer], value.spec);
      plan_->memory.unshared += value.spec.bytes();
    };
    for (const auto& [name, value] : values_) address(value);
    for (const auto& [name, value] : gradients_) address(value);
    for (const Value& value : loose_) address(value);
    for (std::size_t k = 0; k < plan_->backward.size(); ++k)
      plan_->backward[k].context.forward = &plan_->forward[forward_of_.at(backward_node_[k])].context;
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

  std::vector<bool> runs_backward_;
  /// Tensors that some node, fetch or gradient takes.
  std::set<Key> read_;
  std::set<Key> reached_;
  std::set<std::pair<int, int>> gradient_inputs_;
  std::unordered_map<int, int> forward_of_;
  std::vector<int> backward_node_;
  std::set<std::string> staged_names_;
};

}  // namespace

std::unique_ptr<Plan> compile_plan(const Graph& graph, const PlanRequest& request) {
  return Compiler(graph, request).compile();
}

std::string plan_key(const Graph& graph, const PlanRequest& request) {
  std::string text = request.training ? "training" : "inference";
  for (const Output& fetch : request.fetches) text += " " + fetch.name();
  // No node's name holds a comma, so that nothing here can be taken for a fetch.
  if (request.gradients_of) text += ",d " + request.gradients_of->name();
  for (const Output& target : request.gradient_targets) text += ",/ " + target.name();
  const auto [quantization, freeze] = Delays(graph).passed(request.quantization_step);
  return text + concat(",after ", quantization, " delays, ", freeze, " freezes");
}

std::string state_name(const Node& node, const OpState& state) { return node.name() + "/" + state.name; }

}  // namespace miniqat
