#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "quantize/convert/integer_grid.h"
#include "quantize/convert/static_values.h"

namespace miniqat::quantize {

/// A scale and a shift, y = factor x + offset: one for all numbers, or one for each channel. In an integer model the
/// one is a table (integer::Lookup), those of channels are a depthwise convolution of single pixels (integer::Layer).
struct ScaleShift {
  /// Factors, one for each offset; none at all: nothing is scaled or shifted.
  std::vector<double> factors = {};
  std::vector<double> offsets = {};

  bool empty() const { return factors.empty(); }
  bool by_channel() const { return factors.size() > 1; }
};

/// The scale and shift of an op whose input `x` moves and whose other input has this value (scale_shift_input() in
/// quantize/op_roles.h). Throws Error naming the node unless that is one number or one for each channel of x, and all
/// factors and offsets are finite.
ScaleShift scale_shift_of(const Node& node, int x, const Tensor& constant);

/// `first`, then `second`, as one.
ScaleShift composed(const ScaleShift& first, const ScaleShift& second);

/// What a scale and shift for all numbers makes of every number of the input's grid, computed in double.
std::vector<double> scale_shift_values(const ScaleShift& scale_shift, const integer::Grid& input);

/// Each channel of images [h, w, c] times its factor: weights of 127 or -127 of 8 bits, on scales for which these are
/// the factors. Biases, which are the offsets, and multipliers are left to finish_layer(). Throws Error naming the
/// channel for a factor that no scale reaches.
integer::Layer scale_shift_layer(const ScaleShift& scale_shift, const Shape& images);

/// What a batch norm in evaluation does to each channel: gamma / sigma (x - mean) + beta, by the moving statistics.
/// Throws Error naming the node for one that trains, and where gamma / sigma is not finite.
ScaleShift scale_shift_of_batch_norm(const Node& batch_norm, const StaticValues& values);

/// Makes the products of each output channel `factors` times as large: by its scale; where a factor is negative, by the
/// signs of its weights, too. Their zero point stays if it can: it moves where the mirrored weights would leave the
/// integers that there are. Weights whose scale would be 0, or too small for a normal float32, become 0 themselves, and
/// the channel a constant. Throws Error for a scale that is not finite.
void scale_channels(integer::Layer& layer, std::span<const double> factors);

}  // namespace miniqat::quantize
