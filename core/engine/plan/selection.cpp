#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/engine/plan/passes.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

class Selector {
 public:
  Selector(const Graph& graph, const PlanRequest& request)
      : request_(request), phase_(phase_of(request)), order_(graph.topological_order()) {
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
    for (const Output& fetch : request.fetches) asked_for_.insert(fetch.node);
    if (request.gradients_of) asked_for_.insert(request.gradients_of->node);
  }

  SelectedNodes select() {
    std::unordered_set<const Node*> roots = asked_for_;
    const std::unordered_set<const Node*> without_shortcuts = above(roots);
    if (request_.backend == Backend::kFast) {
      for (const Node* node : order_)
        if (const auto* spares = as<TakesShortcuts>(node->op()); spares != nullptr && without_shortcuts.contains(node))
          for (const Shortcut& shortcut : spares->shortcuts(*node, phase_)) take(shortcut);
      for (const Node* node : without_shortcuts)
        if (changes_variables(selected(*node))) roots.insert(node);
    }
    const std::unordered_set<const Node*> needed = above(roots);
    SelectedNodes nodes;
    for (const Node* node : order_) {
      if (!needed.contains(node)) continue;
      check_run(*node);
      nodes.push_back(selected(*node));
    }
    return nodes;
  }

 private:
  /// The given nodes and all that these need, rewired as far as shortcuts have been taken.
  std::unordered_set<const Node*> above(const std::unordered_set<const Node*>& roots) const {
    std::unordered_set<const Node*> needed = roots;
    std::vector<const Node*> pending(roots.begin(), roots.end());
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      for (const Output& input : inputs_of(*node))
        if (needed.insert(input.node).second) pending.push_back(input.node);
    }
    return needed;
  }

  std::vector<Output> inputs_of(const Node& node) const {
    std::vector<Output> inputs(node.inputs().begin(), node.inputs().end());
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (const auto found = rewired_.find({&node, static_cast<int>(k)}); found != rewired_.end())
        inputs[k] = found->second;
    return inputs;
  }

  void take(const Shortcut& shortcut) {
    const auto& [use, taken] = shortcut;
    if (position_.at(taken.node) >= position_.at(use.node))
      fail(describe(*use.node), " cannot take a shortcut to ", describe(*taken.node), ", which comes later");
    rewired_[{use.node, use.input}] = taken;
  }

  SelectedNode selected(const Node& node) const {
    SelectedNode selected{.node = &node,
                          .op = &node.op(),
                          .traits = node.op().traits(),
                          .inputs = inputs_of(node),
                          .outputs = {},
                          .members = {&node},
                          .member_inputs = {inputs_of(node)},
                          .fused = {}};
    for (std::size_t k = 0; k < node.output_specs().size(); ++k)
      selected.outputs.push_back(node.output(static_cast<int>(k)));
    return selected;
  }

  void check_run(const Node& node) const {
    const auto* refuses = as<RefusesRuns>(node.op());
    if (refuses == nullptr) return;
    try {
      refuses->check_run(node.input_specs(), phase_);
    } catch (const Error& error) {
      fail(describe(node), " ", error.what());
    }
  }

  bool changes_variables(const SelectedNode& selected) const {
    return !selected.updated_inputs(phase_).empty() || (phase_.training && !state_of(*selected.op).empty());
  }

  const PlanRequest& request_;
  const Phase phase_;
  const std::vector<Node*> order_;
  std::unordered_map<const Node*, std::size_t> position_;
  std::unordered_set<const Node*> asked_for_;
  /// Other tensors by (node, input).
  std::map<std::pair<const Node*, int>, Output> rewired_;
};

class Fuser final : public FusionScope {
 public:
  Fuser(SelectedNodes nodes, const PlanRequest& request) : request_(request), nodes_(std::move(nodes)) {
    for (const SelectedNode& selected : nodes_) {
      by_node_[selected.node] = &selected;
      for (std::size_t k = 0; k < selected.inputs.size(); ++k)
        readers_[key_of(selected.inputs[k])].push_back({const_cast<Node*>(selected.node), static_cast<int>(k)});
    }
    for (const Output& fetch : request.fetches) kept_.insert(key_of(fetch));
    if (request.gradients_of) kept_.insert(key_of(*request.gradients_of));
  }

  SelectedNodes fuse() {
    std::unordered_map<const Node*, SelectedNode> by_last;
    for (const SelectedNode& selected : nodes_) {
      if (taken_.contains(selected.node)) continue;
      const auto* fuses = as<FusesWithNext>(*selected.op);
      if (fuses == nullptr) continue;
      std::optional<Fusion> fusion = fuses->fuse(*selected.node, *this);
      if (!fusion) continue;
      taken_.insert(fusion->nodes.begin(), fusion->nodes.end());
      const Node* last = fusion->nodes.back();
      by_last.emplace(last, fused(std::move(*fusion)));
    }
    SelectedNodes result;
    for (SelectedNode& selected : nodes_) {
      if (const auto found = by_last.find(selected.node); found != by_last.end())
        result.push_back(std::move(found->second));
      else if (!taken_.contains(selected.node))
        result.push_back(std::move(selected));
    }
    return in_order(std::move(result));
  }

  std::span<const Output> inputs(const Node& node) const override { return by_node_.at(&node)->inputs; }

  const Node* only_reader(Output output) const override {
    const auto found = readers_.find(key_of(output));
    if (found == readers_.end() || found->second.size() != 1 || kept_.contains(key_of(output))) return nullptr;
    const Use& use = found->second.front();
    return use.input <= 1 && !taken_.contains(use.node) ? use.node : nullptr;
  }

  bool is_read(Output output) const override {
    return readers_.contains(key_of(output)) || kept_.contains(key_of(output));
  }

  bool differentiates() const override { return request_.gradients_of.has_value(); }

 private:
  /// Producers first again: of a fused op others may take what one of its first nodes gave.
  static SelectedNodes in_order(SelectedNodes nodes) {
    std::unordered_map<const Node*, std::size_t> producer;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const Output& output : nodes[i].outputs) producer[output.node] = i;
    SelectedNodes result;
    std::vector<bool> visited(nodes.size(), false);
    const auto visit = [&](const auto& self, std::size_t i) -> void {
      if (visited[i]) return;
      visited[i] = true;
      for (const Output& input : nodes[i].inputs) self(self, producer.at(input.node));
      result.push_back(std::move(nodes[i]));
    };
    for (std::size_t i = 0; i < visited.size(); ++i) visit(visit, i);
    return result;
  }

  SelectedNode fused(Fusion fusion) const {
    SelectedNode selected{.node = fusion.named_after,
                          .op = fusion.op.get(),
                          .traits = fusion.op->traits(),
                          .inputs = std::move(fusion.inputs),
                          .outputs = std::move(fusion.outputs),
                          .members = std::move(fusion.nodes),
                          .member_inputs = {},
                          .fused = std::move(fusion.op)};
    for (const Node* member : selected.members) selected.member_inputs.push_back(by_node_.at(member)->inputs);
    return selected;
  }

  const PlanRequest& request_;
  SelectedNodes nodes_;
  std::unordered_map<const Node*, const SelectedNode*> by_node_;
  std::map<TensorKey, std::vector<Use>> readers_;
  std::set<TensorKey> kept_;
  std::unordered_set<const Node*> taken_;
};

}  // namespace

void require_requested(const Graph& graph, const PlanRequest& request) {
  const auto require = [&](Output output) {
    if (!graph.owns(output.node)) fail("a requested tensor is not of this graph");
    if (output.index < 0 || output.index >= static_cast<int>(output.node->output_specs().size()))
      fail(describe(*output.node), " has no output ", output.index, "; it has ", output.node->output_specs().size());
  };
  std::ranges::for_each(request.fetches, require);
  std::ranges::for_each(request.gradient_targets, require);
  if (request.gradients_of) require(*request.gradients_of);
}

namespace {

void check_request(const Graph& graph, const PlanRequest& request) {
  require_requested(graph, request);
  for (const Output& target : request.gradient_targets)
    if (target.node->as<Variable>() == nullptr && target.node->as<Placeholder>() == nullptr)
      fail("gradients are for variables and placeholders, ", describe(*target.node), " is neither");
  if (request.precision != DType::kFloat32 && request.backend == Backend::kFast)
    fail("the fast backend computes in float32 only");
}

}  // namespace

std::vector<TensorSpec> SelectedNode::input_specs() const {
  std::vector<TensorSpec> specs;
  for (const Output& input : inputs) specs.push_back(input.spec());
  return specs;
}

std::vector<int> SelectedNode::updated_inputs(const Phase& phase) const {
  if (!phase.training) return {};
  std::vector<int> updated = traits.updated_inputs;
  if (const auto* observes = as<ObservesBatch>(*op))
    std::erase_if(updated, [&](int input) { return !observes->updates(input, phase); });
  return updated;
}

SelectedNodes select_nodes(const Graph& graph, const PlanRequest& request) {
  check_request(graph, request);
  return Selector(graph, request).select();
}

SelectedNodes fuse_nodes(SelectedNodes nodes, const PlanRequest& request) {
  if (request.backend != Backend::kFast) return nodes;
  return Fuser(std::move(nodes), request).fuse();
}

}  // namespace miniqat
