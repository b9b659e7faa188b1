#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat::layers {

/// The mean over n of -log softmax(logits[n])[labels[n]]. Inputs logits [n, c] float32, labels [n] int32; output a
/// scalar.
///
/// With p = softmax(logits), the loss of one row is log(sum over k of exp(z_k)) - z_label, and its derivative by z_k is
/// p_k - (1 where k is the label, else 0). Subtracting the row's maximum from all z changes neither and keeps exp from
/// overflowing. NaN logits give a NaN loss. A run throws Error naming row and value of a label outside [0, c).
class SoftmaxCrossEntropy final : public Op, public SavesForBackward {
 public:
  std::string_view type() const override { return "SoftmaxCrossEntropy"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<SoftmaxCrossEntropy>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output softmax_cross_entropy(Graph& graph, Output logits, Output labels, const std::string& name = "loss");

}  // namespace miniqat::layers
