#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// How a batch norm becomes part of its layer; derived and compared in docs/rewrite.md. For evaluation the first two
/// give the same.
enum class BnFold {
  /// tf.contrib.quantize's way: the weights are quantized under the moving statistics, corrections make up for the
  /// difference to the batch's, which come from a second convolution with float weights.
  kTf,
  /// One convolution: the batch's statistics are those of the quantized convolution's output, rescaled.
  kSingle,
  /// The weights are quantized as they are, the batch norm stays behind the layer, in evaluation, too. Conversion to
  /// integers makes it part of the scales of the weights, one for each output channel, and of the bias. So ranges of
  /// weights do not move with the statistics.
  kLate,
};

/// "tf", "single" and "late", in this order.
std::span<const std::string_view> names_of(BnFold);

/// The nodes of a layer whose batch norm was folded for training with corrections (BnFold::kTf):
///
///   x, weights -> original layer -> batch_norm -> (mean, variance)
///   correction_mult = weights * scale;  mul_fold = correction_mult * multiplier
///   x, mul_fold [-> quantizer] -> layer [-> BatchToSpaceND or Reshape] = layer_output
///   post_conv_mul = layer_output * recip;  correction_add = post_conv_mul + offset;  add_fold = correction_add + bias
///
/// where (multiplier, bias) come from `fold`, a BatchNormFold, and (scale, recip, offset) from `correction`, a
/// BatchNormCorrection. Each factor may go through a Reshape to fit the weights.
struct FoldedLayer {
  Node* batch_norm = nullptr;
  Node* fold = nullptr;
  Node* correction = nullptr;
  Output weights;
  Node* correction_mult = nullptr;
  Node* mul_fold = nullptr;
  Node* layer = nullptr;
  Output layer_output;
  Node* post_conv_mul = nullptr;
  Node* correction_add = nullptr;
  Node* add_fold = nullptr;
};

/// The folded layer around a BatchNormCorrection, or none when anything about it is otherwise than folding leaves it
/// (quantizers apart): that the batch norm's own output equals add_fold but for the weights' quantizer holds then.
std::optional<FoldedLayer> find_folded_layer(const Node& correction);

/// Whether a quantizer of the folded weights quantizes at that value of the quantization step counter.
bool quantizes_weights(const FoldedLayer& folded, std::int64_t quantization_step);

/// The moving variance [c] by which the weights of a folded layer are scaled for each channel, if `weights` are the
/// scaled ones: mul_fold. A null node for any other tensor.
Output scaling_variance(Output weights);

/// For folding with a single convolution (BnFold::kSingle): the BatchNormScale whose reciprocal the input of
/// `batch_norm` is multiplied by, or null.
Node* find_weight_scale(const Node& batch_norm);

/// Whether a BatchNorm only hands out statistics to a folded layer.
bool gives_statistics_only(const Node& batch_norm);

/// Whether a node is a BatchNorm that is folded late (BnFold::kLate).
bool is_folded_late(const Node& node);

/// How a BatchNorm that is still there is folded, or none.
std::optional<BnFold> folding_of(const Node& batch_norm);

}  // namespace miniqat::quantize
