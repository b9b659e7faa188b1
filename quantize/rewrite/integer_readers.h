#pragma once

#include <string_view>
#include <unordered_set>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// The ops of a graph that need the integers of what they read: those under `scope` that compute with them (layers, and
/// what gets a range of its own), and those that hand them on to such. Ops from which no output of the graph is reached
/// do not count; a graph that names no output is all of it reached.
class IntegerReaders {
 public:
  IntegerReaders(const Graph& graph, std::string_view scope);

  /// Whether somebody beside `next` needs the integers of what `next` reads of `part`, the op before it: another
  /// reader, or the graph's first output. A reader behind a quantizer of its own has them.
  bool needed_beside(const Node& part, const Node& next) const;

 private:
  bool hands_on(const Node& node) const;

  Output first_output_;
  std::unordered_set<const Node*> readers_;
};

}  // namespace miniqat::quantize
