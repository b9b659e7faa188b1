#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/plan/plan_request.h"
#include "core/graph/graph.h"
#include "core/graph/op.h"
#include "core/memory/arena.h"

// The passes of compile_plan, in their order. Each takes what earlier ones returned, and returns a value of its own.
// Steps are numbered: node i of n runs forward in step i and backward in step 2n-1-i; step 2n is behind all of them.

namespace miniqat {

/// Output `second` of a node.
using TensorKey = std::pair<const Node*, int>;
inline TensorKey key_of(const Output& output) { return {output.node, output.index}; }

/// A node that a request needs, or several that run as one.
struct SelectedNode {
  /// The node; of nodes that run as one, the node that names the whole.
  const Node* node = nullptr;
  /// The node's own op, or the fused one.
  const Op* op = nullptr;
  OpTraits traits;
  /// The inputs of the node, or those that a shortcut puts in their place.
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  /// All nodes that run here, producers first: more than one where they are fused.
  std::vector<const Node*> members;
  /// What each of them takes.
  std::vector<std::vector<Output>> member_inputs;
  /// Owns a fused op.
  std::shared_ptr<const Op> fused;

  std::vector<TensorSpec> input_specs() const;
  /// The inputs that a run in this phase updates through this node.
  std::vector<int> updated_inputs(const Phase& phase) const;
};
using SelectedNodes = std::vector<SelectedNode>;

Phase phase_of(const PlanRequest& request);
/// In the request's precision.
TensorSpec planned(const TensorSpec& spec, const PlanRequest& request);
inline int backward_step(const SelectedNodes& nodes, int i) { return 2 * static_cast<int>(nodes.size()) - 1 - i; }
inline int end_step(const SelectedNodes& nodes) { return 2 * static_cast<int>(nodes.size()); }

/// The nodes that the request's fetches and gradient need, producers first. On the fast backend shortcuts are taken,
/// which spares the nodes that then nobody needs (a node that updates variables runs all the same). Throws Error for a
/// request that compile_plan refuses, and for a shortcut that would take a tensor which does not come earlier.
SelectedNodes select_nodes(const Graph& graph, const PlanRequest& request);

/// On the fast backend puts every fusion that an op offers (FusesWithNext) in the place of its nodes, producers first
/// again.
SelectedNodes fuse_nodes(SelectedNodes nodes, const PlanRequest& request);

/// Where the gradient of a request flows.
struct GradientFlow {
  /// For each of the selected nodes: the gradient reaches one of its outputs and somebody wants it at one of its
  /// inputs.
  std::vector<bool> runs_backward;
  /// The tensors that have a gradient.
  std::set<TensorKey> reached;
  /// (node, input): where backward has to compute one.
  std::set<std::pair<int, int>> inputs;
};

GradientFlow gradient_flow(const SelectedNodes& nodes, const PlanRequest& request);

/// Who computes with packed tensors. A view (OpTraits::view) of one is the same tensor here, which goes by its first
/// form, the root.
struct Packing {
  /// What the outputs 0 that have a packed form are in it.
  std::map<TensorKey, PackedForm> forms;
  /// The root of each view.
  std::map<TensorKey, TensorKey> roots;
  /// The nodes whose forward reads its inputs packed, and why those that could do not (of Arithmetic::kInteger).
  std::set<int> readers;
  std::map<int, std::string> floats;
  /// The nodes that round factors (FactorRounding). Readers among them read packed inputs in backward, too.
  std::set<int> rounds;

  TensorKey root_of(const Output& output) const;
  bool is_backward_reader(int i) const { return readers.contains(i) && rounds.contains(i); }
};

Packing choose_packing(const SelectedNodes& nodes, const PlanRequest& request);

/// When a tensor of the graph is needed.
struct TensorLife {
  static constexpr int kNever = -1;

  /// A node, a fetch or the gradient's start takes it.
  bool is_read = false;
  /// The last steps that read it (the one that makes it, if none does), and the first one backward.
  int last_read = 0;
  int last_forward_read = 0;
  int first_backward_read = kNever;
  /// The last step that reads it packed.
  int last_packed_read = kNever;
  /// Forward leaves it in PacksOutput's form.
  bool is_packed = false;
  /// Between its last use in forward and its first in backward only its packed form is kept, and its memory serves
  /// others.
  bool rests_packed = false;
  /// Nothing in forward reads it in another form: it has no memory there.
  bool is_only_packed = false;
};
using TensorLives = std::map<TensorKey, TensorLife>;

/// The lives of all outputs of the nodes. What nodes read packed is packed; so is, in training, a large output that
/// rests between forward and backward. (A NaN makes the whole packed tensor NaN.)
TensorLives tensor_lives(const SelectedNodes& nodes, const GradientFlow& flow, const Packing& packing,
                         const PlanRequest& request);

/// Which tensors share a stretch of memory. Stretches go by their place in `stretches`.
struct Placement {
  /// The stretch of tensors that the session binds, of constants, and of views of either: it is not the plan's.
  static constexpr int kBound = -1;
  /// The stretch of tensors that forward only packs, and of views of them.
  static constexpr int kNowhere = -2;

  /// All outputs but those that forward leaves out.
  std::map<TensorKey, int> values;
  /// Where tensors that rest packed are for backward.
  std::map<TensorKey, int> unpacked;
  std::map<TensorKey, int> gradients;
  /// For each (node, input), a further part of a gradient, to be added to it.
  std::map<std::pair<int, int>, int> gradient_parts;
  /// For each node, what it saves for backward, and the packed form of its output 0 (kBound of bytes that are fed).
  std::map<int, std::vector<int>> saved;
  std::map<int, int> packed;
  std::vector<Lifetime> stretches;
};

Placement place_tensors(const SelectedNodes& nodes, const GradientFlow& flow, const Packing& packing,
                        const TensorLives& lives, const PlanRequest& request);

}  // namespace miniqat
