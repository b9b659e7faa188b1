#pragma once

#include <string>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// The graph as Graphviz text, which `dot -Tsvg` draws; one statement a line, every id in quotes.
///
/// - A node's id is its name, its label the last part of it, with the op type where the name does not say it. An op's
///   label has the shape of output 0 where that differs from input 0's. Graph outputs have a thick border.
/// - Scopes are nested clusters, "cluster_<scope>".
/// - Quantizers have the colour of their role, their bits and the kind of their range. The role follows from structure.
///   Weights: the range is the last value and a layer takes the output as its input 1, also through Identity, Reshape
///   and the like. The graph's inputs: fed by a Placeholder in the same way. Others: fixed range, or activations.
/// - Left out: the quantizers' ranges and the statistics of batch norms, as far as no training changes them.
/// - An edge from output k > 0 is labelled ":k".
/// - A legend explains the colours that occur.
std::string graph_to_dot(const Graph& graph);

}  // namespace miniqat::quantize
