#include "quantize/rewrite/layer_options.h"

#include <algorithm>

#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// Nodes whose value some layer has had a part in, but no layer that reads such.
std::unordered_set<const Node*> behind_layers(const std::vector<Node*>& order) {
  std::unordered_set<const Node*> found;
  for (const Node* node : order)
    if (std::ranges::any_of(node->inputs(),
                            [&](const Output& input) { return is_layer(*input.node) || found.contains(input.node); }))
      found.insert(node);
  return found;
}

/// Nodes that some layer reads, directly or through others.
std::unordered_set<const Node*> before_layers(const std::vector<Node*>& order) {
  std::unordered_set<const Node*> found;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (!is_layer(**node) && !found.contains(*node)) continue;
    for (const Output& input : (*node)->inputs()) found.insert(input.node);
  }
  return found;
}

}  // namespace

LayerOptions::LayerOptions(const Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options)
    : options_(options), index_(options.layer_bits) {
  if (!options.ends_bits && !options.logits_bits && !options.logits_width()) return;
  const std::vector<Node*> order = graph.topological_order();
  const std::unordered_set<const Node*> behind = behind_layers(order), before = before_layers(order);
  for (const LayerMatch& match : matches) {
    const Node* from = match.layer->input(1 - match.weight_input).node;
    if (!is_layer(*from) && !behind.contains(from)) first_.insert(match.layer);
    if (!before.contains(match.last())) last_.insert(match.layer);
  }
}

LayerSettings LayerOptions::of(const LayerMatch& match) const {
  LayerSettings result{.options = options_.with(nullptr), .bits = index_.first_match(match.layer->name())};
  const bool is_last = last_.contains(match.layer);
  if (options_.ends_bits && (is_last || first_.contains(match.layer))) {
    result.options.weight_bits = static_cast<int>(*options_.ends_bits);
    result.of_weight_bits = "ends_bits";
  }
  if (const auto bits = options_.logits_width(); bits && is_last) {
    result.options.activation_bits = *bits;
    result.of_activation_bits = options_.logits_bits ? "logits_bits" : options_.ends_bits ? "ends_bits" : "ranges";
  }
  if (is_last && (options_.logits_bits || options_.ends_bits || options_.logits_width()))
    result.options.sums_bits.reset();
  if (result.bits == nullptr) return result;
  result.options = result.options.with(result.bits);
  if (result.bits->weight_bits) result.of_weight_bits = "bits_config";
  if (result.bits->activation_bits) result.of_activation_bits = "bits_config";
  if (result.bits->sums_bits) result.of_sums_bits = "bits_config";
  return result;
}

LayerSettings LayerSettings::for_sums() const {
  if (!options.widens_sums()) return *this;
  LayerSettings wide = *this;
  wide.options = options.for_sums();
  wide.of_activation_bits = of_sums_bits;
  return wide;
}

}  // namespace miniqat::quantize
