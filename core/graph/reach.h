#pragma once

#include <span>
#include <string>
#include <unordered_set>

#include "core/graph/graph.h"

namespace miniqat {

/// The nodes of these tensors and all that they are computed from.
std::unordered_set<const Node*> nodes_behind(std::span<const Output> tensors);

/// Layers (MultipliesAndAdds) that reach none of the graph's outputs, what is computed from them, and what nothing but
/// these reads (their weights). They are no part of the network, and in nobody's way: a session runs what it is asked
/// for. An output is also one number that nobody reads, as a loss is. None in a graph that names no output.
std::unordered_set<const Node*> unused_nodes(const Graph& graph);

/// A sentence that names the first of these layers; "" where there are none.
std::string note_on_unused_layers(const Graph& graph);

}  // namespace miniqat
