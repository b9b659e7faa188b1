#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat::layers {

enum class BinaryKind { kAdd, kSub, kMul, kDiv };

/// Elementwise arithmetic on two float32 tensors that broadcast by NumPy's rule (rank up to 8): Add, Sub, Mul, Div.
/// Output: their common shape. The gradient of a stretched operand is the sum over the axes along which it was
/// stretched. Throws Error with both shapes while building when they don't broadcast. Division by zero gives infinities
/// and NaN as IEEE 754 has it.
template <BinaryKind kind>
class BinaryOp final : public Op, public FusesWithNext {
 public:
  std::string_view type() const override;
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<BinaryOp>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

using Add = BinaryOp<BinaryKind::kAdd>;
using Sub = BinaryOp<BinaryKind::kSub>;
using Mul = BinaryOp<BinaryKind::kMul>;
using Div = BinaryOp<BinaryKind::kDiv>;

enum class UnaryKind { kRsqrt, kReciprocal, kSquare };

/// Rsqrt 1/sqrt(x), Reciprocal 1/x and Square x*x of every element of a float32 tensor. Values outside the domain give
/// infinities and NaN as IEEE 754 has it.
template <UnaryKind kind>
class UnaryOp final : public Op {
 public:
  std::string_view type() const override;
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<UnaryOp>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

using Rsqrt = UnaryOp<UnaryKind::kRsqrt>;
using Reciprocal = UnaryOp<UnaryKind::kReciprocal>;
using Square = UnaryOp<UnaryKind::kSquare>;

extern template class BinaryOp<BinaryKind::kAdd>;
extern template class BinaryOp<BinaryKind::kSub>;
extern template class BinaryOp<BinaryKind::kMul>;
extern template class BinaryOp<BinaryKind::kDiv>;
extern template class UnaryOp<UnaryKind::kRsqrt>;
extern template class UnaryOp<UnaryKind::kReciprocal>;
extern template class UnaryOp<UnaryKind::kSquare>;

Output add(Graph& graph, const std::string& name, Output a, Output b);
/// a - b.
Output sub(Graph& graph, const std::string& name, Output a, Output b);
Output mul(Graph& graph, const std::string& name, Output a, Output b);
/// a / b.
Output div(Graph& graph, const std::string& name, Output a, Output b);
Output rsqrt(Graph& graph, const std::string& name, Output x);
Output reciprocal(Graph& graph, const std::string& name, Output x);
Output square(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
