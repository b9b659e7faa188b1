#pragma once

#include <span>

#include "core/graph/graph.h"
#include "quantize/convert/integer_model_builder.h"
#include "quantize/convert/static_values.h"

namespace miniqat::quantize {

/// What a batch norm in evaluation does to each channel: gamma / sigma (x - mean) + beta, by the moving statistics.
/// Throws Error naming the node for one that trains, and where gamma / sigma is not finite.
ScaleShift scale_shift_of_batch_norm(const Node& batch_norm, const StaticValues& values);

/// Makes a batch norm that is folded late part of the layer whose sum it reads: y = gamma (x - mean) / sigma + beta is
/// that layer with weights gamma / sigma times as large and a bias, by the moving statistics. Throws as
/// scale_shift_of_batch_norm(), and Error naming the node for a scale that is not finite.
void fold_into_layer(Pending& layer, const Node& batch_norm, const StaticValues& values);

/// Makes the products of each output channel `factors` times as large: by its scale; where a factor is negative, by the
/// signs of its weights, too. Their zero point stays if it can: it moves where the mirrored weights would leave the
/// integers that there are. Weights whose scale would be 0, or too small for a normal float32, become 0 themselves, and
/// the channel a constant. Throws Error for a scale that is not finite.
void scale_channels(integer::Layer& layer, std::span<const double> factors);

}  // namespace miniqat::quantize
