#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat::layers {

/// y[..., c] = x[..., c] + bias[c]. Inputs x [..., c] float32 (rank 1 or more), bias [c]; output like x.
/// Throws Error while building when the bias has another length than x's last axis.
class BiasAdd final : public Op, public FusesWithNext {
 public:
  std::string_view type() const override { return "BiasAdd"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<BiasAdd>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output bias_add(Graph& graph, const std::string& name, Output x, Output bias);

}  // namespace miniqat::layers
