#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "training/report/places.h"

namespace miniqat::training {

/// A network in float, and beside it what the quantizers of each place, alone, make of its tensors: all in one graph,
/// so that one run measures every place, however many there are.
struct AloneNetwork {
  Graph graph;
  /// By place, of the network in float: the layer's output, or what its output's quantizer reads there.
  std::vector<Output> exact = {};
  /// By place: the same tensor, quantized, when only the quantizers of this place work. No node where it has none.
  std::vector<Output> alone = {};
};

/// `places` of `network`, an evaluation graph.
AloneNetwork alone_network(const Graph& network, const std::vector<Place>& places);

}  // namespace miniqat::training
