#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat::layers {

/// y = max(x, 0). Input x float32 of any shape; output like x. NaN stays NaN. The gradient at 0 is 0.
class Relu final : public Op, public FusesWithNext {
 public:
  std::string_view type() const override { return "Relu"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<Relu>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

/// y = min(max(x, 0), 6). Input x float32 of any shape; output like x. NaN stays NaN. The gradient at 0 and 6 is 0.
class Relu6 final : public Op, public FusesWithNext {
 public:
  std::string_view type() const override { return "Relu6"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<Relu6>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output relu(Graph& graph, const std::string& name, Output x);
Output relu6(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
