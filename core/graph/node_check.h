#pragma once

#include <span>
#include <string_view>

#include "core/tensors/tensor.h"
#include "core/text/error.h"

namespace miniqat {

// Checks that every shape inference needs; the texts are completed by the graph with the node's type and name.

/// Throws unless there are exactly `count` inputs.
void require_inputs(std::span<const TensorSpec> inputs, std::size_t count);
/// Throws unless input `index`, called `role` in the message ("filter"), has that rank.
void require_rank(std::span<const TensorSpec> inputs, std::size_t index, int rank, std::string_view role);
/// Throws unless all inputs (or the one given) are float32.
void require_float(std::span<const TensorSpec> inputs);
void require_float(const TensorSpec& input, std::string_view role);
/// Throws when an input has an extent of 0.
void require_elements(std::span<const TensorSpec> inputs);

}  // namespace miniqat
