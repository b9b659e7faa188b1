#include "core/graph/reach.h"

#include <algorithm>
#include <vector>

#include "core/graph/op_interfaces.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

bool is_layer(const Node& node) { return as<MultipliesAndAdds>(node.op()) != nullptr; }

std::vector<Use> readers_of(const Node& node) {
  std::vector<Use> readers;
  for (std::size_t k = 0; k < node.output_specs().size(); ++k)
    readers.insert(readers.end(), node.uses(static_cast<int>(k)).begin(), node.uses(static_cast<int>(k)).end());
  return readers;
}

bool is_unread_number(const Node& node) {
  return !node.inputs().empty() && node.output_specs()[0].shape.elements() == 1 && readers_of(node).empty();
}

}  // namespace

std::unordered_set<const Node*> nodes_behind(std::span<const Output> tensors) {
  std::unordered_set<const Node*> found;
  std::vector<const Node*> pending;
  const auto reach = [&](const Output& tensor) {
    if (found.insert(tensor.node).second) pending.push_back(tensor.node);
  };
  std::ranges::for_each(tensors, reach);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    std::ranges::for_each(node->inputs(), reach);
  }
  return found;
}

std::unordered_set<const Node*> unused_nodes(const Graph& graph) {
  if (graph.outputs().empty()) return {};
  const std::vector<Node*> order = graph.topological_order();
  std::vector<Output> wanted = graph.outputs();
  for (const Node* node : order)
    if (is_unread_number(*node)) wanted.push_back(node->output());
  const std::unordered_set<const Node*> used = nodes_behind(wanted);
  std::unordered_set<const Node*> unused;
  const auto is_unused = [&](const auto& end) { return unused.contains(end.node); };
  for (const Node* node : order)
    if (!used.contains(node) && (is_layer(*node) || std::ranges::any_of(node->inputs(), is_unused)))
      unused.insert(node);
  for (auto place = order.rbegin(); place != order.rend(); ++place) {
    const Node* node = *place;
    const std::vector<Use> readers = readers_of(*node);
    if (!used.contains(node) && !readers.empty() && std::ranges::all_of(readers, is_unused)) unused.insert(node);
  }
  return unused;
}

std::string note_on_unused_layers(const Graph& graph) {
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  const Node* first = nullptr;
  int layers = 0;
  for (const Node* node : graph.topological_order())
    if (unused.contains(node) && is_layer(*node) && layers++ == 0) first = node;
  if (first == nullptr) return "";
  return concat(describe(*first),
                layers > 1 ? concat(" and ", counted(layers - 1, "other layer"), " reach") : " reaches",
                " no output: left out of training, quantization, counts and exports");
}

}  // namespace miniqat
