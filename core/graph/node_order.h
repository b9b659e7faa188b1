#pragma once

#include <cstdint>
#include <utility>

namespace miniqat {

class Node;

/// The place of a node in a NodeOrder. A part of the node.
struct NodePlace {
  Node* before = nullptr;
  Node* after = nullptr;
  /// Grows along the order.
  std::int64_t label = 0;
};

/// An order of a graph's nodes in which producers come before consumers. It answers whether an edge can close a cycle
/// without a walk through the graph: an edge that points forward cannot.
///
/// Nodes are linked, and labelled so that a comparison looks at two numbers. A node that finds no free label between
/// its neighbours has those around it spread out, in the smallest stretch of labels that is sparse enough: O(log n)
/// amortized for each insertion (Bender, Cole, Demaine, Farach-Colton and Zito 2002, "Two simplified algorithms for
/// maintaining order in a list").
class NodeOrder {
 public:
  NodeOrder() = default;
  NodeOrder(NodeOrder&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
  NodeOrder& operator=(NodeOrder&& other) noexcept {
    first_ = std::exchange(other.first_, nullptr);
    return *this;
  }

  /// Behind the last of its inputs, or first of all when it has none: in front of whatever reads its inputs, which may
  /// have to read it instead. `last_input` may be null.
  void insert(Node& node, Node* last_input);
  void erase(Node& node);
  static bool is_before(const Node& a, const Node& b);

  /// Brings `producer` before `consumer`. False, and nothing happens, when there is a path from `consumer` to
  /// `producer`. Walks through the nodes between the two (Pearce and Kelly 2006).
  bool bring_before(Node& producer, Node& consumer);

 private:
  friend class GraphRollback;
  void insert_after(Node& node, Node& place);
  void make_room_after(Node& place);

  Node* first_ = nullptr;
};

}  // namespace miniqat
