#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct BatchNormAttributes {
  double epsilon = 0.001;
  /// The decay of the moving statistics: moving = decay * moving + (1 - decay) * value.
  /// Files of graph JSON version 1 that do not mention it have 0.999, which networks of few steps do not survive.
  double decay = 0.99;
  /// False in evaluation graphs: the moving statistics normalise, even in a training run.
  bool is_training = true;
  /// The quantization step from which on the moving statistics normalise in training, too, and stay as they are; -1 for
  /// never.
  std::int64_t freeze_delay = -1;
  /// The weights of the layer before it are quantized as they are; what it multiplies with becomes part of their scales
  /// when integers are made (quantize/fold/fold_pass.h). Changes nothing that this op computes.
  bool folds_late = false;

  /// Whether the statistics of the batch normalise.
  bool uses_batch(const Phase& phase) const;
  void visit(AttributeVisitor& visitor) {
    visitor.field("epsilon", epsilon);
    visitor.field("decay", decay);
    visitor.field("is_training", is_training);
    visitor.field("freeze_delay", freeze_delay);
    visitor.field("folds_late", folds_late);
  }
};

/// Batch normalisation over all axes but the last (Ioffe and Szegedy 2015, algorithm 1):
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.
/// Inputs x [..., c], gamma, beta, moving_mean, moving_variance [c], all float32; the moving ones must be Variables
/// where the op trains. Outputs 0 y like x, 1 mean [c], 2 variance [c]. In a training step mean and variance are those
/// of the batch (the variance biased, divided by n). They also go into the moving statistics (the variance unbiased,
/// divided by n - 1). Otherwise (evaluation, or frozen) they are the moving ones. All three outputs have gradients.
/// A session refuses training steps in which the batch has one number a channel: less its own mean that is 0, and y
/// would be beta, whatever x is.
struct BatchNorm {
  static constexpr std::string_view kType = "BatchNorm";
  using Attributes = BatchNormAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// Returns y; mean and variance are outputs 1 and 2 of its node.
inline Output batch_norm(Graph& graph, const std::string& name, Output x, Output gamma, Output beta, Output moving_mean,
                         Output moving_variance, const BatchNormAttributes& attributes = {}) {
  return graph.add<BatchNorm>(name, {x, gamma, beta, moving_mean, moving_variance}, attributes);
}

}  // namespace miniqat::layers
