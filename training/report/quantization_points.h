#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::training {

/// A point of a network at which numbers become integers: a layer with its quantizers, or a quantizer of no layer.
struct QuantizationPoint {
  /// The layer's, without "_Fold", or the quantizer's.
  std::string name;
  /// Null of a quantizer between layers.
  const Node* layer = nullptr;
  /// FakeQuants, null where there is none. The output's is the first behind the layer, before another layer.
  const Node* weights = nullptr;
  const Node* output = nullptr;

  /// Where its noise is measured.
  Output tap() const { return (output != nullptr ? output : layer)->output(); }
};

/// The quantization points of an evaluation graph, in its order; all layers of a float network.
std::vector<QuantizationPoint> find_quantization_points(const Graph& evaluation);

/// A network in float, and beside it what the quantizers of each point, alone, make of its tensors: all in one graph,
/// so that one run measures every point, however many there are.
struct AloneNetwork {
  Graph graph;
  /// For each point of the network in float, the layer's output, or what its output's quantizer reads there.
  std::vector<Output> exact = {};
  /// For each point, the same tensor, quantized, when only its quantizers work. No node where it has none.
  std::vector<Output> alone = {};
};

/// `points` of `network`, an evaluation graph.
AloneNetwork alone_network(const Graph& network, const std::vector<QuantizationPoint>& points);

}  // namespace miniqat::training
