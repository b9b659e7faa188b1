#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

struct ReshapeAttributes {
  /// One extent may be -1: what is left of the elements.
  std::vector<std::int64_t> shape;

  void visit(AttributeVisitor& visitor);
};

/// The same elements, of any dtype, under another shape, as a view: it costs nothing. Throws Error with both shapes
/// while building when the numbers of elements differ.
class Reshape final : public Op {
 public:
  Reshape() = default;
  explicit Reshape(const ReshapeAttributes& attributes) : attributes_(attributes) {}
  const ReshapeAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "Reshape"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<Reshape>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  ReshapeAttributes attributes_;
};

Output reshape(Graph& graph, const std::string& name, Output x, const ReshapeAttributes& attributes);

}  // namespace miniqat::layers
