#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// A BatchNorm that is part of no layer (fold/folded_layer.h).
bool is_unfolded_batch_norm(const Node& node);

/// Of an op that sends each number of one tensor through a straight line, y = factor x + offset, because its other
/// operand is a parameter: which input is x. Add, Sub and Mul with the parameter on either side, Div by one, BiasAdd; a
/// BatchNorm that is part of no layer, which is a line for each channel in evaluation. None for any other node. Whether
/// the parameter fits an integer model (one number, or one for each channel), conversion decides.
std::optional<int> line_input(const Node& node);

/// Whether the node's output, outside of layers, gets a range of its own: OpRole::kRequantized, or a line.
bool gets_range(const Node& node);

}  // namespace miniqat::quantize
