#pragma once

#include <string>

#include "core/graph.h"

namespace miniqat::cli {

/// The graph as Graphviz text: layers, quantizers (with bits), variables and the rest in different colours and shapes,
/// edges labelled with shapes. `dot -Tsvg` draws it.
std::string graph_to_dot(const Graph& graph);

}  // namespace miniqat::cli
