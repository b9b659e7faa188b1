#include "quantize/rewrite/integer_readers.h"

#include <algorithm>

#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

bool any_reader(const Node& node, const std::unordered_set<const Node*>& of) {
  for (int k = 0; k < std::ssize(node.output_specs()); ++k)
    if (std::ranges::any_of(node.uses(k), [&](const Use& use) { return of.contains(use.node); })) return true;
  return false;
}

/// Those from which an output is reached.
std::unordered_set<const Node*> reaching_an_output(const Graph& graph, const std::vector<Node*>& order) {
  std::unordered_set<const Node*> found;
  if (graph.outputs().empty()) return {order.begin(), order.end()};
  for (const Output& output : graph.outputs()) found.insert(output.node);
  for (auto node = order.rbegin(); node != order.rend(); ++node)
    if (any_reader(**node, found)) found.insert(*node);
  return found;
}

}  // namespace

IntegerReaders::IntegerReaders(const Graph& graph, std::string_view scope) {
  if (!graph.outputs().empty()) first_output_ = graph.outputs().front();
  const std::vector<Node*> order = graph.topological_order();
  const std::unordered_set<const Node*> reaching = reaching_an_output(graph, order);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = **it;
    const bool computes = (is_layer(node) || gets_range(node)) && in_scope(node.name(), scope);
    if (reaching.contains(&node) && (computes || hands_on(node))) readers_.insert(&node);
  }
}

/// A quantizer behind another one (RewriteOptions::sums_bits) does, any other one is what its readers need.
bool IntegerReaders::hands_on(const Node& node) const {
  const bool narrows = is_quantizer(node) && is_quantizer(*source_through(node.input(0), OpRole::kKeepsRange).node);
  return (keeps_range(node) || narrows) && any_reader(node, readers_);
}

bool IntegerReaders::needed_beside(const Node& part, const Node& next) const {
  for (const Output& read : next.inputs()) {
    if (source_through(read, OpRole::kQuantizer) != part.output()) continue;
    const auto uses = read.node->uses(read.index);
    if (read == first_output_ ||
        std::ranges::any_of(uses, [&](const Use& use) { return use.node != &next && readers_.contains(use.node); }))
      return true;
  }
  return false;
}

}  // namespace miniqat::quantize
