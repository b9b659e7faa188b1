#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat {

/// Several nodes that the fast backend runs as one op. The tensors between them are never computed.
struct Fusion {
  /// Declares traits, saved tensors and state as any op does, by position in `inputs` and `outputs`.
  std::shared_ptr<const Op> op;
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  /// The nodes, producers first. The fused op runs in the place of the last.
  std::vector<const Node*> nodes;
  /// The one of them that names the op's state, its random numbers and its errors.
  const Node* named_after = nullptr;
};

/// Questions of an op about the nodes around it, while it looks for others to fuse with.
class FusionScope {
 public:
  virtual ~FusionScope() = default;
  /// The node's inputs in this plan, shortcuts taken.
  virtual std::span<const Output> inputs(const Node& node) const = 0;
  /// The node that takes this tensor as input 0 or 1 and is the only one that reads it in any way; null when there is
  /// none such, or when the node is part of another fusion already.
  virtual const Node* only_reader(Output output) const = 0;
  /// Whether a node, a fetch or the gradient's start takes it.
  virtual bool is_read(Output output) const = 0;
  /// Whether the plan has gradients.
  virtual bool differentiates() const = 0;
};

/// An op that exists in a plan only: no graph holds it, so there are no attributes and there is nothing to specify.
class FusedOp : public Op {
 public:
  void reference_forward(const ForwardContext&) const final { fail("the reference backend runs no fused op"); }
};

}  // namespace miniqat
