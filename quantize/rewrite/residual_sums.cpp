#include "quantize/rewrite/residual_sums.h"

#include <algorithm>

#include "layers/elementwise.h"
#include "layers/reshape.h"
#include "quantize/fake_quant.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

constexpr OpRole kSameNumbers = OpRole::kQuantizer | OpRole::kKeepsRange;

bool is_operand(Output tensor, const Node& sum) {
  if (tensor.shape() != sum.output().shape()) return false;
  return !has_role(*source_through(tensor, kSameNumbers).node, OpRole::kParameter);
}

bool is_residual_sum(const Node& node) {
  return node.as<layers::Add>() &&
         std::ranges::all_of(node.inputs(), [&](const Output& input) { return is_operand(input, node); });
}

}  // namespace

ResidualSums::ResidualSums(const Graph& graph) {
  const std::vector<Node*> order = graph.topological_order();
  find_ends(graph, order);
  for (const Node* node : order) {
    if (!is_residual_sum(*node)) continue;
    for (const Output& operand : node->inputs()) add_operand(operand);
    add_result(*node);
  }
}

void ResidualSums::find_ends(const Graph& graph, const std::vector<Node*>& order) {
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node* const node = *it;
    const auto uses = node->uses();
    const bool ends = !uses.empty() && !graph.is_output(*node) &&
                      std::ranges::all_of(uses, [&](const Use& use) { return ends_in_layers(use); });
    if (ends) read_by_layers_.insert(node);
  }
}

bool ResidualSums::ends_in_layers(const Use& use) const {
  return is_layer(*use.node) || (has_role(*use.node, kSameNumbers) && read_by_layers_.contains(use.node));
}

void ResidualSums::add_operand(Output operand) {
  for (const Node* node = operand.node;; node = node->input(0).node) {
    const bool passes_on = has_role(*node, kSameNumbers);
    if (!kept_.insert(node).second || !passes_on) return;
  }
}

/// The quantizer of a sum follows its activation, which may be a copy.
void ResidualSums::add_result(const Node& node) {
  if (!read_by_layers_.contains(&node)) kept_.insert(&node);
  for (const Use& use : uses_through(node.output(), kQuantizerOrIdentity))
    if ((is_clamp(*use.node) || use.node->as<layers::Identity>()) && !read_by_layers_.contains(use.node))
      kept_.insert(use.node);
}

std::vector<Node*> quantizers_for_layers(const Node& quantizer) {
  const std::int64_t bits = quantizer.as<FakeQuant>()->bits;
  std::vector<Node*> found;
  for (const Use& use : uses_through(quantizer.output(), OpRole::kKeepsRange))
    if (const auto* narrow = use.node->as<FakeQuant>(); narrow && use.input == 0 && narrow->bits < bits)
      found.push_back(use.node);
  return found;
}

}  // namespace miniqat::quantize
