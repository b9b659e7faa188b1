#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::training {

/// The memory and work of a network when it runs. Engines may keep narrow integers in whole bytes: these are the least
/// figures.
struct NetworkCost {
  /// The weights of each layer packed at their width, and 32 bits for the bias of each output channel. Scales and zero
  /// points are left out, batch norms belong to the weights and biases that they are folded into.
  std::int64_t parameter_bytes = 0;
  /// For one picture: multiply-adds x bits of the weights x bits of the layer's input, summed over the layers.
  std::int64_t bit_operations = 0;
};

/// The share of one layer.
struct LayerCost {
  const Node* layer = nullptr;
  std::int64_t weight_bits = 0;
  std::int64_t input_bits = 0;
  /// The multiply-adds for one picture.
  std::int64_t multiply_adds = 0;
  NetworkCost cost = {};
};

/// The costs of the graph's layers that reach an output, in the order of its nodes; cost_of() is their sum.
std::vector<LayerCost> layer_costs(const Graph& evaluation, std::int64_t batch);

/// The bits of a tensor in an evaluation graph: those of the quantizer whose integers it holds, otherwise 32.
std::int64_t bits_of_tensor(Output tensor);

/// The cost of an evaluation graph, in float or rewritten, whose pictures come in batches of `batch`. Tensors without a
/// quantizer count with 32 bits. Pictures have the 8 bits of their bytes if the weights of their layer are quantized.
NetworkCost cost_of(const Graph& evaluation, std::int64_t batch);

}  // namespace miniqat::training
