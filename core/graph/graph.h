#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/attributes.h"
#include "core/tensors/tensor.h"

namespace miniqat {

class GraphRollback;
class Node;
class Op;
struct BackwardContext;
struct ForwardContext;
struct Phase;

/// The attributes of ops that have none.
struct NoAttributes {
  void visit(AttributeVisitor&) {}
};

/// Output `index` of a node: a tensor of the graph. Valid as long as the node is in its graph.
struct Output {
  Node* node = nullptr;
  int index = 0;

  const TensorSpec& spec() const;
  const Shape& shape() const { return spec().shape; }
  /// "name" or, for any output but the first, "name:k".
  std::string name() const;
  friend bool operator==(const Output&, const Output&) = default;
};

/// Input `input` of `node`: one consumer of a tensor.
struct Use {
  Node* node = nullptr;
  int input = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

/// Another tensor that a consumer may take in one phase because it is the same up to rounding, in value and gradient,
/// so that the nodes in between need not run. See TakesShortcuts.
struct Shortcut {
  Use use;
  /// The tensor that the use takes instead: an earlier one of the same shape.
  Output taken;
};

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

/// An op in a graph. Only the graph's mutators change it.
class Node {
 public:
  const std::string& name() const { return name_; }
  const Op& op() const { return *op_; }
  /// For another node that shall have the same op.
  const std::shared_ptr<const Op>& shared_op() const { return op_; }
  /// Op::type.
  std::string_view type() const;
  std::span<const Output> inputs() const { return inputs_; }
  const Output& input(int i) const { return inputs_[i]; }
  std::span<const TensorSpec> output_specs() const { return specs_; }
  Output output(int i = 0) const { return {const_cast<Node*>(this), i}; }
  /// Consumers of output i, in the order in which they came.
  std::span<const Use> uses(int i = 0) const { return uses_[i]; }
  std::vector<TensorSpec> input_specs() const;
  /// The attributes of an op of that kind, say layers::Conv2d; null when the op is of another kind.
  template <class Kind>
  const typename Kind::Attributes* as() const {
    return type() == Kind::kType ? static_cast<const typename Kind::Attributes*>(attributes()) : nullptr;
  }

 private:
  friend class Graph;
  friend class GraphRollback;
  friend class NodeOrder;
  Node() = default;
  const void* attributes() const;

  std::string name_;
  std::shared_ptr<const Op> op_;
  std::vector<Output> inputs_;
  std::vector<TensorSpec> specs_;
  std::vector<std::vector<Use>> uses_;
  NodePlace place_;
  /// In Graph::nodes_.
  std::size_t slot_ = 0;
};

/// A model: nodes with unique, '/'-scoped names and the edges between them. Define first, run later (Session); rewrite
/// at any time through the mutators below, which alone edit edges and keep consumers right. Every mutator either
/// succeeds or throws Error, or std::invalid_argument for an op that is null, and leaves the graph as it was;
/// GraphRollback makes the same of several calls. The cost of a mutator does not depend on the size of the graph,
/// except for edges moved to a node behind their reader (NodeOrder), and for set_node_order. Not thread-safe.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph clone() const;

  /// Appends a node. Throws when the name is empty, taken or malformed, an input is not of this graph, or shape
  /// inference refuses.
  Node& add(const std::string& name, std::shared_ptr<const Op> op, std::vector<Output> inputs);
  /// Appends a node of an op of that kind, say layers::Conv2d. Returns its first output.
  template <class Kind>
  Output add(const std::string& name, std::vector<Output> inputs, const typename Kind::Attributes& attributes = {}) {
    return add(name, Kind::make(attributes), std::move(inputs)).output();
  }
  /// Makes all consumers of `from` (but `to`'s own node), and the graph outputs that name it, take `to`. Returns how
  /// many edges moved.
  int reroute(Output from, Output to);
  /// Moves only the given uses of `from`; graph outputs stay.
  int reroute(Output from, Output to, std::span<const Use> uses);
  /// Exchanges a node's op for another with the same output shapes.
  void replace_op(Node& node, std::shared_ptr<const Op> op);
  /// Removes a node that has no consumers and is no graph output.
  void erase(Node& node);

  /// Null when there is none.
  Node* find(std::string_view name) const;
  bool owns(const Node* node) const { return owned_.contains(node); }
  /// Throws Error that offers the nearest names.
  Node& at(std::string_view name) const;
  /// "node" or "node:k"; throws Error when there is no such node or output.
  Output output_at(std::string_view name) const;
  /// `name`, or `name_1`, `name_2`, ... when taken.
  std::string unique_name(const std::string& name) const;

  /// In the order of their addition. Not necessarily topological after a rewrite.
  std::vector<Node*> nodes() const;
  /// Producers before consumers, otherwise in the order of addition. Throws Error that names a cycle.
  std::vector<Node*> topological_order() const;
  std::size_t size() const { return owned_.size(); }

  /// The tensors that the graph is about (logits, say), as in JSON's "outputs".
  const std::vector<Output>& outputs() const { return outputs_; }
  bool is_output(Output output) const;
  /// Whether the graph is about any of the node's outputs.
  bool is_output(const Node& node) const;
  void set_outputs(std::vector<Output> outputs);

  /// Re-infers every shape and checks names, edges, consumers and acyclicity. Throws Error at the first thing wrong.
  void verify() const;
  /// Changes with every mutation: plans compare it.
  std::uint64_t revision() const { return revision_; }
  /// Puts the nodes into the given order (a permutation of nodes()): the graph JSON reader keeps the file's order.
  void set_node_order(std::span<Node* const> order);

 private:
  friend class GraphRollback;
  void require_owned(Output output, std::string_view role) const;
  void move_uses(Output from, Output to, std::span<const Use> uses);
  void drop_holes();
  void forget_number(std::string_view name);
  void verify_edges() const;

  /// Null where a node was erased, until half of them are.
  std::vector<std::unique_ptr<Node>> nodes_;
  NodeOrder order_;
  std::unordered_set<const Node*> owned_;
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  template <class Value>
  using ByName = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;
  ByName<Node*> by_name_;
  /// For names that unique_name() has numbered: no smaller number is free.
  mutable ByName<int> next_number_;
  std::vector<Output> outputs_;
  std::uint64_t revision_ = 0;
  /// Takes what is erased while there is one.
  GraphRollback* rollback_ = nullptr;
};

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

/// "a/b" of "a/b/c", "" of "c": the scope a node's name lives in.
std::string scope_of(std::string_view name);
/// "scope/name", or "name" in no scope.
std::string join_scope(const std::string& scope, const std::string& name);

/// "conv1" holds "conv1/Conv2D" but neither "conv10/Conv2D" nor "conv1"; "" holds all. A '/' at the end of the scope
/// does not matter.
bool in_scope(std::string_view name, std::string_view scope);

/// `[Conv2D "conv1/Conv2D"]`, the head of every message about a node.
std::string describe(const Node& node);

}  // namespace miniqat
