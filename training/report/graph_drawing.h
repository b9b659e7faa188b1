#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/graph/graph.h"

namespace miniqat::training {

/// A graph to be drawn: {"nodes", "edges"}. Left out are the ranges of quantizers and all parameters but the weights of
/// layers. Nodes, in topological order: {"name", "type", "role", "detail", "is_output"}. The role is "input", "layer",
/// "weights" or "activations" of quantizers, "parameter" or "op"; the detail a quantizer's bits and kind of range,
/// otherwise the shape of the output if it is new. Edges: [from, to, bits], with the places of nodes, and the bits of
/// the numbers that it carries (bits_of_tensor()); 8 for pictures that go into a quantized layer as bytes.
nlohmann::ordered_json draw_graph(const Graph& graph);

}  // namespace miniqat::training
