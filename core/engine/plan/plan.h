#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/plan/plan_request.h"
#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat {

/// A graph compiled for one request: the order of the nodes, dead ones dropped, and every tensor's memory laid out
/// once. Plain data: the session binds variables and feeds to it, then walks through the steps.
struct Plan {
  struct ForwardStep {
    /// The node, or of several that are fused the one that names them.
    const Node* node = nullptr;
    /// The node's own, or the fused one.
    const Op* op = nullptr;
    /// The op's type for people, with what it multiplies.
    std::string type;
    /// All nodes that run here, producers first, and what each of them takes in this plan (shortcuts taken).
    std::vector<const Node*> members;
    std::vector<std::vector<Output>> member_inputs;
    /// In the order of context.inputs and context.outputs.
    std::vector<Output> inputs;
    std::vector<Output> outputs;
    /// hash_text of the node's name, for its random numbers.
    std::uint64_t name_hash = 0;
    ForwardContext context;
    /// What context.packed is in.
    PackedForm packed_form = {};
  };
  /// A tensor with several consumers gets its gradient in parts: total += part after the step.
  struct Sum {
    Tensor* total = nullptr;
    const Tensor* part = nullptr;
  };
  /// An output that backward reads and that forward leaves packed, so that its memory serves others in between.
  struct Packed {
    PackedForm form;
    const Tensor* bytes = nullptr;
    /// The tensor, and views of it.
    std::vector<Tensor*> tensors;
    /// The tensor's memory until it is unpacked (none, if forward only packs it), and from then on.
    Tensor forward_place = {};
    Tensor backward_place = {};

    void move_to(const Tensor& place) const;
  };
  struct BackwardStep {
    const Node* node = nullptr;
    const Op* op = nullptr;
    BackwardContext context;
    std::vector<Sum> sums;
    /// To be unpacked before this step.
    std::vector<const Packed*> unpacks;
  };
  /// A tensor that the session supplies before each run: a feed or a variable.
  struct Binding {
    const Node* node = nullptr;
    Tensor* tensor = nullptr;
    /// Where the bytes of a placeholder go, in the form of form_of_bytes(); null if it is fed none. The tensor then is
    /// the plan's, and the sweep unpacks into it, or it is not defined().
    Tensor* codes = nullptr;
  };
  /// Shares the memory of a bound tensor under another shape.
  struct BoundView {
    Tensor* tensor = nullptr;
    const Tensor* base = nullptr;
    Shape shape;
  };
  /// The new value of a variable or op state, copied from the current one before the run.
  struct Staged {
    std::string variable;
    Tensor tensor = {};
    /// The current value; the session's.
    Tensor* value = nullptr;
    /// The node that updates it is an ObservesBatch in this phase.
    bool observed = false;
  };

  std::vector<ForwardStep> forward;
  std::vector<BackwardStep> backward;
  std::vector<Binding> placeholders;
  std::vector<Binding> variables;
  std::vector<BoundView> bound_views;
  std::deque<Staged> staged;
  std::deque<Packed> packed;
  /// What all steps observe; each ForwardContext::observed is a part of it. Empty unless the request is a slice.
  std::vector<ShardStatistic> observed;
  std::vector<const Tensor*> fetches;
  /// Where backward starts: filled with ones. Null without gradients.
  Tensor* seed = nullptr;
  /// One per gradient target; null where the gradient does not reach it.
  std::vector<const Tensor*> gradients;
  PlanMemory memory;

  /// Own what the pointers above point to.
  std::vector<std::shared_ptr<const Op>> fused;
  std::deque<Tensor> tensors;
  Tensor arena;
  /// While memory is guarded (core/memory/guarded_memory.h), in place of the arena: every stretch on its own.
  std::vector<Tensor> stretches;
};

/// Throws Error for a request that cannot be planned: outputs of another graph, a gradient target that is neither
/// Variable nor Placeholder, an op that wants to update something else than a Variable, or one that two ops update; for
/// a slice, an op that updates variables and is no ObservesBatch.
std::unique_ptr<Plan> compile_plan(const Graph& graph, const PlanRequest& request);

/// Throws Error unless the request's tensors are of this graph.
void require_requested(const Graph& graph, const PlanRequest& request);

/// Equal for requests that may share a plan, as long as the graph's revision stays: require_requested() knows whether
/// they are of one graph. `delays`: of the graph; finding them takes a way through all its nodes, every run a key.
std::string plan_key(const Delays& delays, const PlanRequest& request);

}  // namespace miniqat
