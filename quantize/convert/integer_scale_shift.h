#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "quantize/convert/integer_grid.h"

namespace miniqat::quantize {

/// A scale and a shift, y = factor x + offset: one for all numbers, or one for each channel. In an integer model the
/// one is a table (integer::Lookup), those of channels are a depthwise convolution of single pixels (integer::Layer).
struct ScaleShift {
  /// As many factors as offsets; none at all: nothing is scaled or shifted.
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

}  // namespace miniqat::quantize
