#include "core/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "core/graph/op.h"
#include "core/graph/source_ops.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat {
namespace {

/// In a .safetensors file this is no tensor.
constexpr std::string_view kNoVariable = "__metadata__";

/// Between labels of neighbours at either end of the order, for what comes between them later.
constexpr std::int64_t kStep = std::int64_t{1} << 20;
constexpr int kLabelBits = 62;
/// A stretch of 2^i labels is sparse with at most (2 / kOverflow)^i nodes.
constexpr double kOverflow = 1.5;

void require_name(const std::string& name) {
  if (name.empty()) fail("a node needs a name");
  const bool plain =
      std::ranges::all_of(name, [](unsigned char c) { return c > ' ' && c != ':' && c != '"' && c != ',' && c < 127; });
  if (!plain) fail("the name ", quote(name), " may not hold spaces, double quotes, ':', ',' or anything but ASCII");
  if (name.front() == '/' || name.back() == '/') fail("the name ", quote(name), " may not start or end with '/'");
}

std::vector<TensorSpec> infer(const Op* op, const std::string& name, std::span<const TensorSpec> inputs) {
  if (op == nullptr) throw std::invalid_argument(concat("the node ", quote(name), " needs an op, got null"));
  try {
    return op->infer(inputs);
  } catch (const Error& error) {
    fail("[", op->type(), " ", quote(name), "] ", error.what());
  }
}

std::vector<TensorSpec> specs_of(std::span<const Output> inputs) {
  std::vector<TensorSpec> specs;
  for (const Output& input : inputs) specs.push_back(input.spec());
  return specs;
}

std::string shapes_of(std::span<const TensorSpec> specs) {
  std::string text;
  for (const TensorSpec& spec : specs) text += (text.empty() ? "" : ", ") + spec.shape.str();
  return text;
}

/// Differs between graphs, too: a session sees when another graph is moved into the one that it holds.
std::uint64_t next_revision() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

const TensorSpec& Output::spec() const { return node->output_specs()[index]; }

std::string Output::name() const { return index == 0 ? node->name() : concat(node->name(), ":", index); }

std::string_view Node::type() const { return op_->type(); }

const void* Node::attributes() const { return op_->attributes(); }

std::vector<TensorSpec> Node::input_specs() const { return specs_of(inputs_); }

std::string scope_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return std::string(slash == std::string_view::npos ? "" : name.substr(0, slash));
}

std::string join_scope(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : scope + "/" + name;
}

bool in_scope(std::string_view name, std::string_view scope) {
  if (scope.ends_with('/')) scope.remove_suffix(1);
  return scope.empty() || (name.size() > scope.size() && name.starts_with(scope) && name[scope.size()] == '/');
}

std::string describe(const Node& node) { return concat("[", node.type(), " ", quote(node.name()), "]"); }

bool NodeOrder::is_before(const Node& a, const Node& b) { return a.place_.label < b.place_.label; }

void NodeOrder::insert(Node& node, Node* last_input) {
  if (last_input) return insert_after(node, *last_input);
  node.place_ = {.before = nullptr, .after = first_, .label = first_ ? first_->place_.label - kStep : 0};
  if (first_) first_->place_.before = &node;
  first_ = &node;
}

void NodeOrder::erase(Node& node) {
  const NodePlace& place = node.place_;
  (place.before ? place.before->place_.after : first_) = place.after;
  if (place.after) place.after->place_.before = place.before;
}

void NodeOrder::insert_after(Node& node, Node& place) {
  Node* next = place.place_.after;
  if (next && next->place_.label - place.place_.label < 2) make_room_after(place);
  const std::int64_t label = place.place_.label;
  node.place_ = {
      .before = &place, .after = next, .label = next ? label + (next->place_.label - label) / 2 : label + kStep};
  place.place_.after = &node;
  if (next) next->place_.before = &node;
}

void NodeOrder::make_room_after(Node& place) {
  Node *first = &place, *last = &place;
  std::int64_t count = 1;
  for (int bits = 1; bits <= kLabelBits; ++bits) {
    const std::int64_t mask = (std::int64_t{1} << bits) - 1;
    const std::int64_t low = place.place_.label & ~mask, high = low | mask;
    for (; first->place_.before && first->place_.before->place_.label >= low; ++count) first = first->place_.before;
    for (; last->place_.after && last->place_.after->place_.label <= high; ++count) last = last->place_.after;
    const std::int64_t room = (mask + 1) / count;
    if (room < 4 || static_cast<double>(count) > std::pow(2 / kOverflow, bits)) continue;
    for (std::int64_t i = 0; i < count; ++i, first = first->place_.after) first->place_.label = low + i * room;
    return;
  }
}

bool NodeOrder::bring_before(Node& producer, Node& consumer) {
  if (&producer == &consumer) return false;
  if (is_before(producer, consumer)) return true;
  std::vector<Node*> reached = {&consumer};
  std::unordered_set<const Node*> seen = {&consumer};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const auto& uses : reached[i]->uses_)
      for (const Use& use : uses) {
        if (use.node == &producer) return false;
        if (is_before(*use.node, producer) && seen.insert(use.node).second) reached.push_back(use.node);
      }
  std::ranges::sort(reached, [](const Node* a, const Node* b) { return is_before(*a, *b); });
  Node* place = &producer;
  for (Node* node : reached) {
    erase(*node);
    insert_after(*node, *place);
    place = node;
  }
  return true;
}

Graph Graph::clone() const {
  Graph copy;
  const auto twin = [&copy](Output output) { return Output{copy.by_name_.at(output.node->name()), output.index}; };
  for (const Node* node : topological_order()) {
    std::vector<Output> inputs;
    for (const Output& input : node->inputs_) inputs.push_back(twin(input));
    copy.add(node->name_, node->op_, std::move(inputs));
  }
  std::vector<Node*> order;
  for (const Node* node : nodes()) order.push_back(copy.by_name_.at(node->name_));
  copy.set_node_order(order);
  for (const Output& output : outputs_) copy.outputs_.push_back(twin(output));
  return copy;
}

Node& Graph::add(const std::string& name, std::shared_ptr<const Op> op, std::vector<Output> inputs) {
  require_name(name);
  if (name == kNoVariable && op != nullptr && op->type() == Variable::kType)
    fail("[Variable ", quote(name), "] needs another name: a checkpoint could not hold it, .safetensors files keep ",
         quote(name), " for remarks");
  if (by_name_.contains(name)) fail("there are two nodes named ", quote(name));
  for (const Output& input : inputs) require_owned(input, "an input of \"" + name + "\"");
  const std::vector<TensorSpec> input_specs = specs_of(inputs);
  std::vector<TensorSpec> specs = infer(op.get(), name, input_specs);

  auto node = std::unique_ptr<Node>(new Node);
  node->name_ = name;
  node->op_ = std::move(op);
  node->inputs_ = std::move(inputs);
  node->uses_.resize(specs.size());
  node->specs_ = std::move(specs);
  for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
    const Output& input = node->inputs_[i];
    input.node->uses_[input.index].push_back({node.get(), static_cast<int>(i)});
  }
  Node* last_input = nullptr;
  for (const Output& input : node->inputs_)
    if (!last_input || NodeOrder::is_before(*last_input, *input.node)) last_input = input.node;
  order_.insert(*node, last_input);
  by_name_.emplace(name, node.get());
  owned_.insert(node.get());
  node->slot_ = nodes_.size();
  nodes_.push_back(std::move(node));
  revision_ = next_revision();
  return *nodes_.back();
}

int Graph::reroute(Output from, Output to) {
  require_owned(from, "the rerouted tensor");
  std::vector<Use> uses;
  for (const Use& use : from.node->uses_[from.index])
    if (use.node != to.node) uses.push_back(use);
  const int moved = reroute(from, to, uses);
  std::ranges::replace(outputs_, from, to);
  return moved;
}

int Graph::reroute(Output from, Output to, std::span<const Use> uses) {
  require_owned(from, "the rerouted tensor");
  require_owned(to, "the new tensor");
  if (from.spec() != to.spec())
    fail("cannot reroute from ", from.name(), " ", from.shape(), " to ", to.name(), " ", to.shape(),
         ": the shapes differ");
  // Copied, because `uses` may be from.node->uses(), which shrinks with every move.
  const std::vector<Use> moving(uses.begin(), uses.end());
  for (const Use& use : moving) {
    if (!owned_.contains(use.node)) fail("a use of ", from.name(), " belongs to a node that is not of this graph");
    if (use.input < 0 || use.input >= static_cast<int>(use.node->inputs_.size()) ||
        use.node->inputs_[use.input] != from)
      fail(describe(*use.node), " does not take ", from.name(), " as input ", use.input);
    if (!order_.bring_before(*to.node, *use.node))
      fail("rerouting ", describe(*use.node), " to ", to.name(), " would close a cycle");
  }
  move_uses(from, to, moving);
  revision_ = next_revision();
  return static_cast<int>(moving.size());
}

void Graph::move_uses(Output from, Output to, std::span<const Use> uses) {
  for (const Use& use : uses) {
    Output& input = use.node->inputs_[use.input];
    // Named twice, or there already.
    if (input == to) continue;
    input = to;
    to.node->uses_[to.index].push_back(use);
  }
  std::erase_if(from.node->uses_[from.index], [&](const Use& use) { return use.node->inputs_[use.input] != from; });
}

void Graph::replace_op(Node& node, std::shared_ptr<const Op> op) {
  require_owned(node.output(), "the node");
  const std::vector<TensorSpec> specs = infer(op.get(), node.name_, node.input_specs());
  if (specs != node.specs_)
    fail(describe(node), " cannot become a ", op->type(), ": its outputs would change from ", shapes_of(node.specs_),
         " to ", shapes_of(specs));
  node.op_ = std::move(op);
  revision_ = next_revision();
}

void Graph::erase(Node& node) {
  require_owned(node.output(), "the node");
  for (const auto& uses : node.uses_)
    if (!uses.empty()) fail("cannot erase ", describe(node), ": ", describe(*uses.front().node), " takes its output");
  for (const Output& output : outputs_)
    if (output.node == &node) fail("cannot erase ", describe(node), ": it is an output of the graph");
  for (std::size_t i = 0; i < node.inputs_.size(); ++i)
    std::erase(node.inputs_[i].node->uses_[node.inputs_[i].index], Use{&node, static_cast<int>(i)});
  by_name_.erase(node.name_);
  owned_.erase(&node);
  order_.erase(node);
  forget_number(node.name_);
  std::unique_ptr<Node> erased = std::move(nodes_[node.slot_]);
  if (rollback_) rollback_->keep(std::move(erased));
  if (nodes_.size() > 2 * owned_.size()) drop_holes();
  revision_ = next_revision();
}

void Graph::drop_holes() {
  std::erase(nodes_, nullptr);
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->slot_ = i;
}

Node* Graph::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Node& Graph::at(std::string_view name) const {
  if (Node* node = find(name)) return *node;
  std::vector<std::string> names;
  for (const Node* node : nodes()) names.push_back(node->name_);
  fail("the graph has no node ", quote(name), did_you_mean(name, names));
}

Output Graph::output_at(std::string_view name) const {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return at(name).output();
  Node& node = at(name.substr(0, colon));
  const std::string digits(name.substr(colon + 1));
  const bool number = !digits.empty() && digits.size() < 6 && std::ranges::all_of(digits, is_ascii_digit);
  const std::size_t index = number ? std::stoul(digits) : node.specs_.size();
  if (index >= node.specs_.size())
    fail(describe(node), " has no output \":", digits, "\"; it has ", node.specs_.size());
  return node.output(static_cast<int>(index));
}

std::string Graph::unique_name(const std::string& name) const {
  if (!by_name_.contains(name)) return name;
  int& number = next_number_.try_emplace(name, 1).first->second;
  for (std::string candidate;; ++number)
    if (candidate = concat(name, "_", number); !by_name_.contains(candidate)) return candidate;
}

/// "conv_7" is free again.
void Graph::forget_number(std::string_view name) {
  const std::size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos) return;
  const auto found = next_number_.find(name.substr(0, underscore));
  if (found == next_number_.end()) return;
  int number = 0;
  const char* end = name.data() + name.size();
  if (std::from_chars(name.data() + underscore + 1, end, number).ptr == end && number > 0)
    found->second = std::min(found->second, number);
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> all;
  all.reserve(owned_.size());
  for (const auto& node : nodes_)
    if (node) all.push_back(node.get());
  return all;
}

std::vector<Node*> Graph::topological_order() const {
  // Depth first with an explicit stack: a file may hold a chain far longer than the call stack is deep.
  enum class Mark : char { kNew, kOpen, kDone };
  std::vector<Mark> marks(nodes_.size(), Mark::kNew);
  std::vector<Node*> order;
  order.reserve(size());
  struct Frame {
    Node* node;
    std::size_t next_input;
  };
  std::vector<Frame> stack;
  for (Node* root : nodes()) {
    if (marks[root->slot_] != Mark::kNew) continue;
    stack.push_back({root, 0});
    marks[root->slot_] = Mark::kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next_input == frame.node->inputs_.size()) {
        marks[frame.node->slot_] = Mark::kDone;
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      Node* producer = frame.node->inputs_[frame.next_input++].node;
      Mark& mark = marks[producer->slot_];
      if (mark == Mark::kOpen) fail("the graph has a cycle through ", describe(*producer));
      if (mark == Mark::kDone) continue;
      mark = Mark::kOpen;
      stack.push_back({producer, 0});
    }
  }
  return order;
}

bool Graph::is_output(Output output) const { return std::ranges::find(outputs_, output) != outputs_.end(); }

bool Graph::is_output(const Node& node) const {
  return std::ranges::any_of(outputs_, [&](const Output& output) { return output.node == &node; });
}

void Graph::set_outputs(std::vector<Output> outputs) {
  for (const Output& output : outputs) require_owned(output, "a graph output");
  outputs_ = std::move(outputs);
  revision_ = next_revision();
}

void Graph::verify() const {
  for (const Node* node : nodes()) {
    const auto named = by_name_.find(node->name_);
    if (named == by_name_.end() || named->second != node) fail(describe(*node), " is not known under its name");
    if (infer(node->op_.get(), node->name_, node->input_specs()) != node->specs_)
      fail(describe(*node), " no longer has the shapes it was built with: ", shapes_of(node->specs_));
  }
  verify_edges();
  for (const Output& output : outputs_)
    if (!owned_.contains(output.node)) fail("an output of the graph belongs to a node that is not in it");
  if (topological_order().size() != size()) fail("the graph's edges lead out of it");
}

/// Every edge is known to both of its ends, once, and leads forward in the order.
void Graph::verify_edges() const {
  const auto hash = [](const Use& use) { return std::hash<const Node*>{}(use.node) * 31 + use.input; };
  std::unordered_set<Use, decltype(hash)> known(0, hash);
  for (const Node* node : nodes())
    for (std::size_t k = 0; k < node->uses_.size(); ++k)
      for (const Use& use : node->uses_[k])
        if (!owned_.contains(use.node) || use.node->inputs_.at(use.input) != node->output(static_cast<int>(k)) ||
            !known.insert(use).second)
          fail(describe(*node), " lists a consumer that does not take its output ", k);
  for (const Node* node : nodes())
    for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
      const Node* producer = node->inputs_[i].node;
      if (!owned_.contains(producer))
        fail(describe(*node), " takes input ", i, " from a node that is not in the graph");
      if (!known.contains({const_cast<Node*>(node), static_cast<int>(i)}))
        fail(describe(*producer), " does not know its consumer ", describe(*node));
      if (!NodeOrder::is_before(*producer, *node))
        fail(describe(*node), " stands before ", describe(*producer), ", which it takes");
    }
}

void Graph::set_node_order(std::span<Node* const> order) {
  std::unordered_map<const Node*, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place.emplace(order[i], i);
  const bool permutation = order.size() == size() && place.size() == size() &&
                           std::ranges::all_of(order, [&](const Node* node) { return owned_.contains(node); });
  if (!permutation) fail("the node order must name every node once");
  drop_holes();
  std::vector<std::unique_ptr<Node>> sorted(nodes_.size());
  for (auto& node : nodes_) {
    node->slot_ = place.at(node.get());
    sorted[node->slot_] = std::move(node);
  }
  nodes_ = std::move(sorted);
  revision_ = next_revision();
}

void Graph::require_owned(Output output, std::string_view role) const {
  if (output.node == nullptr) fail(role, " is an empty output");
  if (!owned_.contains(output.node)) fail(role, " is not of this graph");
  if (output.index < 0 || output.index >= static_cast<int>(output.node->specs_.size()))
    fail(role, " asks for output ", output.index, " of ", describe(*output.node));
}

GraphRollback::GraphRollback(Graph& graph)
    : graph_(&graph),
      slots_(graph.nodes_.size()),
      first_(graph.order_.first_),
      next_number_(graph.next_number_),
      outputs_(graph.outputs_),
      revision_(graph.revision_) {
  if (graph.rollback_) fail("a graph can be rolled back to one moment only");
  nodes_.reserve(graph.size());
  for (const auto& node : graph.nodes_)
    if (node) nodes_.push_back({node.get(), node->op_, node->inputs_, node->uses_, node->place_, node->slot_});
  graph.rollback_ = this;
}

GraphRollback::~GraphRollback() {
  if (!graph_) return;
  graph_->rollback_ = nullptr;
  restore();
}

void GraphRollback::commit() {
  graph_->rollback_ = nullptr;
  graph_ = nullptr;
  erased_.clear();
}

void GraphRollback::restore() noexcept {
  std::unordered_map<const Node*, std::unique_ptr<Node>> nodes;
  for (auto* owners : {&graph_->nodes_, &erased_})
    for (std::unique_ptr<Node>& node : *owners)
      if (node) nodes.emplace(node.get(), std::move(node));

  graph_->nodes_.clear();
  graph_->nodes_.resize(slots_);
  graph_->owned_.clear();
  graph_->by_name_.clear();
  for (Former& former : nodes_) {
    Node& node = *former.node;
    node.op_ = std::move(former.op);
    node.inputs_ = std::move(former.inputs);
    node.uses_ = std::move(former.uses);
    node.place_ = former.place;
    node.slot_ = former.slot;
    graph_->owned_.insert(&node);
    graph_->by_name_.emplace(node.name_, &node);
    graph_->nodes_[node.slot_] = std::move(nodes.at(&node));
  }
  graph_->order_.first_ = first_;
  graph_->next_number_ = std::move(next_number_);
  graph_->outputs_ = std::move(outputs_);
  graph_->revision_ = revision_;
}

}  // namespace miniqat
