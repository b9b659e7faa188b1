#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace miniqat::training {

/// The memory and work of a network when it runs. Engines may keep narrow integers in whole bytes: these are the least
/// figures.
struct NetworkCost {
  /// The weights of each layer packed at their width, and 32 bits for the bias of each output channel. Scales and zero
  /// points are left out, batch norms belong to the weights and biases that they are folded into.
  std::int64_t parameter_bytes = 0;
  /// Of one picture: multiply-adds x bits of the weights x bits of the layer's input, summed over the layers.
  std::int64_t bit_operations = 0;
};

/// Of an evaluation graph, in float or rewritten, whose pictures come in batches of `batch`. Tensors without a
/// quantizer count with 32 bits. Pictures have the 8 bits of their bytes if the weights of their layer are quantized.
NetworkCost cost_of(const Graph& evaluation, std::int64_t batch);

}  // namespace miniqat::training
