#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y[r, c] = exp(x[r, c]) / sum over k of exp(x[r, k]), along the last axis. Input x [..., c] float32 (rank 1 or more);
/// output like x. Large values are safe: the row's maximum is subtracted first, which changes nothing else.
struct Softmax {
  static constexpr std::string_view kType = "Softmax";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output softmax(Graph& graph, const std::string& name, Output x) { return graph.add<Softmax>(name, {x}); }

struct SoftmaxCrossEntropyAttributes {
  /// The share of the target that is spread over all classes alike, in [0, 1) (Szegedy et al. 2015, section 7).
  double label_smoothing = 0;
  /// The factor on the loss of a row, for each class as its label; empty: 1.
  std::vector<double> class_weights = {};

  void visit(AttributeVisitor& visitor) {
    visitor.field("label_smoothing", label_smoothing);
    visitor.field("class_weights", class_weights);
  }
};

/// The mean over n of w_label times the cross entropy between the target of label n and softmax(logits[n]), where w are
/// the class weights. The sum is divided by n, not by the sum of the weights, so that a mean of slices is that of the
/// batch. Inputs logits [n, c]
/// float32, labels [n] int32; output a scalar.
///
/// With e = label_smoothing the target is t_k = e / c, and 1 - e more where k is the label. The loss of one row is
/// log(sum over k of exp(z_k)) - sum over k of t_k z_k, which without smoothing is -log softmax(z)_label, and its
/// derivative by z_k is softmax(z)_k - t_k. Subtracting the row's maximum from all z changes neither and keeps exp from
/// overflowing. A weight multiplies both. NaN logits give a NaN loss. A run throws Error naming row and value of a
/// label outside [0, c).
struct SoftmaxCrossEntropy {
  static constexpr std::string_view kType = "SoftmaxCrossEntropy";
  using Attributes = SoftmaxCrossEntropyAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output softmax_cross_entropy(Graph& graph, Output logits, Output labels, const std::string& name = "loss",
                                    const SoftmaxCrossEntropyAttributes& attributes = {}) {
  return graph.add<SoftmaxCrossEntropy>(name, {logits, labels}, attributes);
}

}  // namespace miniqat::layers
