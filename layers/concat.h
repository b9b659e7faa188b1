#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

struct ConcatAttributes {
  /// Counts from the end when negative.
  std::int64_t axis = -1;

  void visit(AttributeVisitor& visitor);
};

/// Joins one or more float32 tensors along an axis; all other extents must agree. The output's extent along the axis is
/// the sum of the inputs'. Throws Error with both shapes while building when they don't fit.
class Concat final : public Op {
 public:
  Concat() = default;
  explicit Concat(const ConcatAttributes& attributes) : attributes_(attributes) {}
  const ConcatAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "Concat"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<Concat>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  ConcatAttributes attributes_;
};

Output concat(Graph& graph, const std::string& name, std::vector<Output> inputs,
              const ConcatAttributes& attributes = {});

}  // namespace miniqat::layers
