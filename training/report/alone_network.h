#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "training/report/quantization_points.h"

namespace miniqat::training {

/// A network in float, and beside it what the quantizers of each point, alone, make of its tensors: all in one graph,
/// so that one run measures every point, however many there are.
struct AloneNetwork {
  Graph graph;
  /// By point, of the network in float: the layer's output, or what its output's quantizer reads there.
  std::vector<Output> exact = {};
  /// By point: the same tensor, quantized, when only the quantizers of this point work. No node where it has none.
  std::vector<Output> alone = {};
};

/// `points` of `network`, an evaluation graph.
AloneNetwork alone_network(const Graph& network, const std::vector<QuantizationPoint>& points);

}  // namespace miniqat::training
