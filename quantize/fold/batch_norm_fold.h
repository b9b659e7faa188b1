#pragma once

#include <memory>

#include "core/graph/graph.h"

// The arithmetic of batch-norm folding on vectors of one number a channel. Which nodes of the graph use it, and why, is
// derived in docs/rewrite.md. Throughout, sigma = sqrt(variance + epsilon); "batch" is what the BatchNorm node hands
// out as the statistics that normalise, in training those of the batch and otherwise the moving ones.

namespace miniqat::quantize {

struct BatchNormFoldAttributes {
  double epsilon = 0.001;

  void visit(AttributeVisitor& visitor) { visitor.field("epsilon", epsilon); }
};

/// A batch norm as an affine map: gamma * (x - mean) / sigma + beta = multiplier * x + bias.
/// Inputs gamma, beta, mean, variance, all [c] float32. Outputs 0 multiplier = gamma / sigma, 1 bias = beta - mean *
/// multiplier, both [c].
struct BatchNormFold {
  static constexpr std::string_view kType = "BatchNormFold";
  using Attributes = BatchNormFoldAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

struct BatchNormCorrectionAttributes {
  double epsilon = 0.001;
  /// The quantization step from which on the moving statistics normalise; -1 for never. As of the BatchNorm node.
  std::int64_t freeze_delay = -1;

  bool is_frozen(const Phase& phase) const;
  void visit(AttributeVisitor& visitor) {
    visitor.field("epsilon", epsilon);
    visitor.field("freeze_delay", freeze_delay);
  }
};

/// Corrections, so that the weights are quantized as in evaluation, scaled by the slow moving sigma_m, while the
/// batch's sigma_b still normalises.
/// Inputs gamma, mean, variance (those that normalise), moving_mean, moving_variance, all [c] float32. Outputs, all
/// [c]: 0 scale = sigma_b / sigma_m for the weights; 1 recip for the layer's output, sigma_m / sigma_b, once frozen 1;
/// 2 offset, 0, once frozen gamma * (mean_b / sigma_b - mean_m / sigma_m).
/// The moving statistics have no gradient.
struct BatchNormCorrection {
  static constexpr std::string_view kType = "BatchNormCorrection";
  using Attributes = BatchNormCorrectionAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

struct BatchNormScaleAttributes {
  double epsilon = 0.001;
  /// The least magnitude of gamma that scales weights, above 0.
  double floor = 1e-3;

  void visit(AttributeVisitor& visitor) {
    visitor.field("epsilon", epsilon);
    visitor.field("floor", floor);
  }
};

/// For folding with a single convolution: the factor by which the weights are multiplied before they are quantized and
/// the layer's output divided again, before the batch norm.
/// Inputs gamma, moving_variance [c] float32. Outputs 0 scale = gamma' / sigma_m, 1 recip = 1 / scale, both [c]. gamma'
/// is gamma kept away from 0 by `floor` (with its sign). So a channel whose gamma vanishes still has an output to take
/// statistics from, and a way back. The exception: a range shared with other channels may round all its weights to 0,
/// as evaluation then will, too. Neither output has a gradient: but for rounding, the two factors cancel.
struct BatchNormScale {
  static constexpr std::string_view kType = "BatchNormScale";
  using Attributes = BatchNormScaleAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

}  // namespace miniqat::quantize
