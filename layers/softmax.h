#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

/// y[r, c] = exp(x[r, c]) / sum over k of exp(x[r, k]), along the last axis. Input x [..., c] float32 (rank 1 or more);
/// output like x. Large values are safe: the row's maximum is subtracted first, which changes nothing else.
class Softmax final : public Op {
 public:
  std::string_view type() const override { return "Softmax"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<Softmax>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output softmax(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
