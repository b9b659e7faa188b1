#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "quantize/convert/integer_grid.h"

namespace miniqat::quantize {

/// y = factor x + offset: one line for all numbers, or one for each channel. An integer model has one line as a table
/// (integer::Lookup) and several as a depthwise convolution of single pixels (integer::Layer).
struct Line {
  /// As many of one as of the other; none at all for no line.
  std::vector<double> factors = {};
  std::vector<double> offsets = {};

  bool empty() const { return factors.empty(); }
  bool by_channel() const { return factors.size() > 1; }
};

/// The line of an op whose input `x` moves and whose other input has this value (line_input() in quantize/op_roles.h).
/// Throws Error naming the node unless that is one number or one for each channel of x, and the line is finite.
Line line_of(const Node& node, int x, const Tensor& constant);

/// The line `second` of what `first` gives.
Line both_lines(const Line& first, const Line& second);

/// What the one line makes of every number of the input's grid, computed in double.
std::vector<double> line_values(const Line& line, const integer::Grid& input);

/// Each channel of images [h, w, c] times its factor: weights of 127 or -127 of 8 bits, on scales for which these are
/// the factors. Biases, which are the offsets, and multipliers are left to finish_layer(). Throws Error naming the
/// channel for a factor that no scale reaches.
integer::Layer line_layer(const Line& line, const Shape& images);

}  // namespace miniqat::quantize
