#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat::layers {

struct BatchNormAttributes {
  double epsilon = 0.001;
  /// Of the moving statistics: moving = decay * moving + (1 - decay) * value.
  double decay = 0.999;
  /// False in evaluation graphs: the moving statistics normalise, even in a training run.
  bool is_training = true;
  /// The quantization step from which on the moving statistics normalise in training, too, and stay as they are; -1 for
  /// never.
  std::int64_t freeze_delay = -1;
  /// The weights of the layer before it are quantized as they are; what it multiplies with becomes part of their scales
  /// when integers are made (quantize/fold/fold_pass.h). Changes nothing that this op computes.
  bool folds_late = false;

  void visit(AttributeVisitor& visitor);
};

/// Batch normalisation over all axes but the last (Ioffe and Szegedy 2015, algorithm 1):
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.
/// Inputs x [..., c], gamma, beta, moving_mean, moving_variance [c], all float32; the moving ones must be Variables
/// where the op trains. Outputs 0 y like x, 1 mean [c], 2 variance [c]: in a training step those of the batch (the
/// variance biased, divided by n), which also go into the moving statistics (the variance unbiased, divided by n - 1);
/// otherwise (evaluation, or frozen) the moving ones. All three outputs have gradients.
class BatchNorm final : public Op,
                        public SavesForBackward,
                        public ChangesLater,
                        public TakesShortcuts,
                        public FusesWithNext {
 public:
  BatchNorm() = default;
  explicit BatchNorm(const BatchNormAttributes& attributes) : attributes_(attributes) {}
  const BatchNormAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "BatchNorm"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<BatchNorm>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override;
  std::optional<std::int64_t> freeze_delay() const override;
  std::vector<Shortcut> shortcuts(const Node& self, const Phase& phase) const override;
  std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  bool uses_batch(const ForwardContext& context) const {
    return context.training && attributes_.is_training && !context.frozen;
  }

  BatchNormAttributes attributes_;
};

/// Returns y; mean and variance are outputs 1 and 2 of its node.
Output batch_norm(Graph& graph, const std::string& name, Output x, Output gamma, Output beta, Output moving_mean,
                  Output moving_variance, const BatchNormAttributes& attributes = {});

}  // namespace miniqat::layers
