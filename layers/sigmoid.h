#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = 1 / (1 + e^-x), in [0, 1]. Input x float32 of any shape; output like x. NaN stays NaN.
class Sigmoid final : public Op {
 public:
  std::string_view type() const override { return "Sigmoid"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<Sigmoid>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output sigmoid(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
