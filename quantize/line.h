#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// Of an op that sends each number of one tensor through a straight line, y = factor x + offset, because its other
/// operand is a parameter: which input is x. Add, Sub and Mul with the parameter on either side, Div by one, BiasAdd.
/// None for any other node. Whether the parameter fits an integer model (one number, or one for each channel),
/// conversion decides.
std::optional<int> line_input(const Node& node);

/// Whether the node's output, outside of layers, gets a range of its own: OpRole::kRequantized, or a line.
bool gets_range(const Node& node);

}  // namespace miniqat::quantize
