#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "integer/arithmetic.h"
#include "quantize/convert/integer_grid.h"

namespace miniqat::quantize {

// Elementwise functions as tables of integers.

/// What an op of one input (OpRole::kTable) makes of every number of the input's grid, by its reference loops in
/// double. The numbers are those that training dequantizes, in float32. Throws Error naming the node for a result that
/// is not finite.
std::vector<double> lookup_values(const Node& node, const integer::Grid& input);

/// The integers for these: rounded to float32, then as training rounds them (quantize/affine.h), within the target's
/// clamp.
std::vector<std::uint8_t> lookup_table(std::span<const double> values, const Target& target);

}  // namespace miniqat::quantize
