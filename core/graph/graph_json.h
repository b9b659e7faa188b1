#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace miniqat {

/// The graph in the format "miniqat.graph" version 2: one node a line, attributes at their defaults left out.
std::string graph_to_json(const Graph& graph);

/// The inverse, of versions 1 and 2: the same nodes in the same order. `source` names the text in errors, which say
/// where and what: malformed JSON with its offset, unknown ops and attributes, duplicate, dangling and cyclic names,
/// refused shapes.
Graph graph_from_json(std::string_view text, std::string_view source = "graph");

Graph read_graph(const std::filesystem::path& path);
/// Written to a temporary file first, then renamed.
void write_graph(const std::filesystem::path& path, const Graph& graph);

}  // namespace miniqat
