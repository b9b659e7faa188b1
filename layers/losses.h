#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

// Losses whose targets are float32: each is the mean over all elements of how far a prediction is from its target, so
// that a mean of slices is that of the batch. The target gets no gradient. NaN in either gives a NaN loss.

/// The mean of (p - t)^2 over all elements p of the prediction and t of the target. Inputs prediction [n, ...] float32,
/// rank 1 or more; target like it; output a scalar.
struct MeanSquaredError {
  static constexpr std::string_view kType = "MeanSquaredError";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output mean_squared_error(Graph& graph, Output prediction, Output target, const std::string& name = "loss");

struct HuberAttributes {
  /// The error up to which the loss is a parabola, above 0.
  double delta = 1;

  void visit(AttributeVisitor& visitor);
};

/// The mean over all elements of e^2 / 2 where |e| <= delta and of delta * (|e| - delta / 2) beyond, with e the
/// prediction minus the target (Huber 1964, "Robust estimation of a location parameter"): no error pulls with more than
/// delta. Inputs and output as those of MeanSquaredError.
struct Huber {
  static constexpr std::string_view kType = "Huber";
  using Attributes = HuberAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output huber(Graph& graph, Output prediction, Output target, const std::string& name = "loss",
             const HuberAttributes& attributes = {});

/// The mean over all elements of the cross entropy between a target t in [0, 1] and s = sigmoid(x) of a logit x: of
/// -t log(s) - (1 - t) log(1 - s), computed as max(x, 0) - x t + log(1 + exp(-|x|)), which does not overflow. Its
/// derivative is s - t. One logit for a question that has a yes or a no; several for labels that may hold together.
/// Inputs logits [n, k] float32, targets like them; output a scalar. A run throws Error naming place and value of a
/// target outside [0, 1].
struct SigmoidCrossEntropy {
  static constexpr std::string_view kType = "SigmoidCrossEntropy";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output sigmoid_cross_entropy(Graph& graph, Output logits, Output targets, const std::string& name = "loss");

}  // namespace miniqat::layers
