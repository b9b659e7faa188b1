#include "core/engine/plan/plan_selection.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/engine/plan/plan_fusion.h"
#include "core/error.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"

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

  std::vector<SelectedNode> select() {
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
    std::vector<SelectedNode> nodes;
    for (const Node* node : order_) {
      if (!needed.contains(node)) continue;
      check_run(*node);
      nodes.push_back(selected(*node));
    }
    if (request_.backend == Backend::kFast) nodes = fuse_nodes(std::move(nodes), request_);
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
  std::map<std::pair<const Node*, int>, Output> rewired_;
};

void check_request(const Graph& graph, const PlanRequest& request) {
  const auto require = [&](Output output) {
    if (!graph.owns(output.node)) fail("a requested tensor is not of this graph");
    if (output.index < 0 || output.index >= static_cast<int>(output.node->output_specs().size()))
      fail(describe(*output.node), " has no output ", output.index, "; it has ", output.node->output_specs().size());
  };
  std::ranges::for_each(request.fetches, require);
  std::ranges::for_each(request.gradient_targets, require);
  if (request.gradients_of) require(*request.gradients_of);
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
  if (const auto* changes = as<ChangesLater>(*op))
    std::erase_if(updated, [&](int input) { return !changes->updates(input, phase); });
  return updated;
}

Phase phase_of(const PlanRequest& request) { return {request.training, request.quantization_step}; }

std::vector<SelectedNode> select_nodes(const Graph& graph, const PlanRequest& request) {
  check_request(graph, request);
  return Selector(graph, request).select();
}

}  // namespace miniqat
