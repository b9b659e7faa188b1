#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat::layers {

struct MatMulAttributes {
  bool transpose_a = false;
  bool transpose_b = false;

  void visit(AttributeVisitor& visitor);
  friend bool operator==(const MatMulAttributes&, const MatMulAttributes&) = default;
};

/// Matrix product of float32 matrices: inputs a [m, k] (stored [k, m] with transpose_a) and b [k, n] (stored [n, k]
/// with transpose_b); output [m, n].
class MatMul final : public Op, public MultipliesAndAdds {
 public:
  MatMul() = default;
  explicit MatMul(const MatMulAttributes& attributes) : attributes_(attributes) {}
  const MatMulAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "MatMul"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<MatMul>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  MatMulAttributes attributes_;
};

Output matmul(Graph& graph, const std::string& name, Output a, Output b, const MatMulAttributes& attributes = {});

}  // namespace miniqat::layers
