#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

struct DropoutAttributes {
  /// The share of elements that are dropped, in [0, 1).
  double rate = 0.5;

  void visit(AttributeVisitor& visitor);
};

/// In training y = x * mask / (1 - rate), where mask is 0 with probability `rate` and else 1 (inverted dropout,
/// Srivastava et al. 2014, section 10); y = x otherwise. Input x float32 of any shape; output like x.
/// Whether element i is dropped depends on the session's seed, the node's name, the step and i only.
class Dropout final : public Op {
 public:
  Dropout() = default;
  explicit Dropout(const DropoutAttributes& attributes) : attributes_(attributes) {}
  const DropoutAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "Dropout"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<Dropout>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  DropoutAttributes attributes_;
};

Output dropout(Graph& graph, const std::string& name, Output x, const DropoutAttributes& attributes = {});

}  // namespace miniqat::layers
