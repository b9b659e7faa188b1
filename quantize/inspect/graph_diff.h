#pragma once

#include <string>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// The changes from `before` to `after`, as text that ends in a line of counts: nodes added and removed, edges
/// rerouted, attributes changed, and outputs changed. Nodes are the same when their names are. The range variables of
/// quantizers that are added or removed with them are counted but not listed. Says so when nothing differs.
std::string graph_diff(const Graph& before, const Graph& after);

}  // namespace miniqat::quantize
