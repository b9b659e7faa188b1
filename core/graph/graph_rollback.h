#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat {

/// Undoes everything that happens to a graph while it lives, unless commit() is called: so that a rewrite of many steps
/// either succeeds or leaves the graph as it was. Nodes keep their addresses, erased ones included, consumers their
/// order, and the revision is the old one again, so that plans made before still fit. Takes time in proportion to the
/// size of the graph, but copies no op.
///
/// One at a time for a graph, which must not be moved meanwhile.
class GraphRollback {
 public:
  explicit GraphRollback(Graph& graph);
  ~GraphRollback();
  GraphRollback(const GraphRollback&) = delete;
  GraphRollback& operator=(const GraphRollback&) = delete;

  /// What has happened stays. Erased nodes are gone from here on.
  void commit();

 private:
  friend class Graph;
  void keep(std::unique_ptr<Node> erased) { erased_.push_back(std::move(erased)); }
  void restore() noexcept;

  /// What may change of a node.
  struct Former {
    Node* node;
    std::shared_ptr<const Op> op;
    std::vector<Output> inputs;
    std::vector<std::vector<Use>> uses;
    NodePlace place;
    std::size_t slot;
  };

  /// Null once it is over.
  Graph* graph_;
  std::vector<Former> nodes_;
  std::size_t slots_;
  Node* first_;
  Graph::ByName<int> next_number_;
  std::vector<Output> outputs_;
  std::uint64_t revision_;

  std::vector<std::unique_ptr<Node>> erased_;
};

}  // namespace miniqat
