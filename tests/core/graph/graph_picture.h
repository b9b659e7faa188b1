#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/text/error.h"

namespace miniqat::testing {

/// Everything about a graph that a failed mutation must leave alone.
inline std::string picture(const Graph& graph) {
  std::string text;
  for (const Node* node : graph.nodes()) {
    text += describe(*node);
    for (const Output& input : node->inputs()) text += " <" + input.name();
    for (std::size_t k = 0; k < node->output_specs().size(); ++k)
      for (const Use& use : node->uses(static_cast<int>(k)))
        text += concat(" ", k, ">", use.node->name(), "#", use.input);
    text += ";";
  }
  for (const Output& output : graph.outputs()) text += " out " + output.name();
  return text;
}

}  // namespace miniqat::testing
