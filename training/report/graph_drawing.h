#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::training {

/// A node as a picture shows it.
struct DrawnNode {
  std::string name;
  std::string type;
  /// "input", "layer", "weights" and "activations" of quantizers, "parameter", "op".
  std::string role;
  /// A quantizer's bits and kind of range, otherwise the shape of the output if it is new.
  std::string detail;
  bool is_output = false;
};

struct DrawnEdge {
  /// Indices of nodes.
  std::size_t from = 0, to = 0;
  /// The bits of its numbers (bits_of_tensor()); 8 for pictures that go into a quantized layer as bytes.
  std::int64_t bits = 32;
};

/// A graph to be drawn: its nodes in topological order. Left out are the ranges of quantizers and all parameters but
/// the weights of layers.
struct GraphDrawing {
  std::vector<DrawnNode> nodes = {};
  std::vector<DrawnEdge> edges = {};
};
GraphDrawing draw_graph(const Graph& graph);

}  // namespace miniqat::training
