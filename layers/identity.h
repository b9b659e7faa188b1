#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

/// y = x, of any shape and dtype, as a view: it costs nothing.
class Identity final : public Op {
 public:
  std::string_view type() const override { return "Identity"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<Identity>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output identity(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
