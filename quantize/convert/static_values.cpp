#include "quantize/convert/static_values.h"

#include <algorithm>
#include <span>

#include "core/engine/session.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
StaticValues::StaticValues(Graph& graph, Output output, const NamedTensors& variables) {
  part(graph, output);
  evaluate(graph, variables);
}

void StaticValues::part(const Graph& graph, Output output) {
  const std::unordered_set<const Node*> needed = nodes_behind(std::span(&output, 1));
  for (Node* node : graph.topological_order()) {
    if (!needed.contains(node)) continue;
    const bool moves = node->as<Placeholder>() || std::ranges::any_of(node->inputs(), [&](const Output& input) {
                         return moving_set_.contains(input.node);
                       });
    (moves ? moving_ : still_).push_back(node);
    if (moves) moving_set_.insert(node);
  }
}

std::vector<Output> StaticValues::wanted() const {
  std::vector<Output> tensors;
  const auto want = [&](Output tensor) {
    if (!moves(tensor.node) && std::ranges::find(tensors, tensor) == tensors.end()) tensors.push_back(tensor);
  };
  for (const Node* node : moving_)
    for (const Output& input : node->inputs()) {
      want(input);
      const Node* source = source_through(input, kIdentity).node;
      if (is_quantizer(*source)) std::ranges::for_each(source->inputs(), want);
    }
  return tensors;
}

void StaticValues::evaluate(Graph& graph, const NamedTensors& variables) {
  const std::vector<Output> tensors = wanted();
  if (tensors.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  Session session(graph);
  for (const Node* node : still_) {
    if (!node->as<Variable>()) continue;
    const auto found = variables.find(node->name());
    if (found == variables.end()) fail("variable \"", node->name(), "\" is missing", did_you_mean(node->name(), names));
    session.set_variable(node->name(), found->second);
  }
  const std::vector<Tensor> fetched = session.run({.fetches = tensors}, {}).fetched;
  for (std::size_t i = 0; i < tensors.size(); ++i) values_[{tensors[i].node, tensors[i].index}] = fetched[i];
}

const Tensor& StaticValues::value(Output tensor) const {
  const Tensor* found = find(tensor);
  if (found == nullptr) fail(describe(*tensor.node), " depends on the network's input; a range must not");
  return *found;
}

const Tensor* StaticValues::find(Output tensor) const {
  const auto found = values_.find({tensor.node, tensor.index});
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace miniqat::quantize
