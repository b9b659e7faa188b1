#include "training/report/quantization_points.h"

#include <algorithm>
#include <unordered_map>

#include "core/graph/reach.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/layer_bits.h"

namespace miniqat::training {
namespace {

/// Behind the weights of the layer, upwards.
const Node* weight_quantizer(const Node& layer) {
  const Node* source = quantize::source_through(layer.input(1), quantize::OpRole::kKeepsRange).node;
  return quantize::is_quantizer(*source) ? source : nullptr;
}

/// The nearest, by the number of ops between.
const Node* output_quantizer(const Node& layer) {
  std::vector<const Node*> reached = {&layer};
  std::set<const Node*> seen = {&layer};
  for (std::size_t next = 0; next < reached.size(); ++next)
    for (const Use& use : reached[next]->uses()) {
      if (!seen.insert(use.node).second || quantize::is_layer(*use.node)) continue;
      if (quantize::is_quantizer(*use.node)) return use.node;
      reached.push_back(use.node);
    }
  return nullptr;
}

}  // namespace

std::vector<QuantizationPoint> find_quantization_points(const Graph& evaluation) {
  std::vector<QuantizationPoint> points;
  std::set<const Node*> taken;
  const std::vector<Node*> order = evaluation.topological_order();
  const std::unordered_set<const Node*> unused = unused_nodes(evaluation);
  for (const Node* node : order) {
    if (!quantize::is_layer(*node) || unused.contains(node)) continue;
    const QuantizationPoint point{.name = quantize::unfolded_name(node->name()),
                                  .layer = node,
                                  .weights = weight_quantizer(*node),
                                  .output = output_quantizer(*node)};
    taken.insert({point.weights, point.output});
    points.push_back(point);
  }
  for (const Node* node : order)
    if (quantize::is_quantizer(*node) && !unused.contains(node) && !taken.contains(node) &&
        !quantize::quantizes_weights(*node))
      points.push_back({.name = node->name(), .output = node});
  std::unordered_map<const Node*, std::size_t> position;
  for (std::size_t i = 0; i < order.size(); ++i) position.emplace(order[i], i);
  std::ranges::sort(points, {}, [&](const QuantizationPoint& point) {
    return position.at(point.layer != nullptr ? point.layer : point.output);
  });
  return points;
}

Graph with_quantizers(const Graph& graph, const std::set<std::string>& working) {
  Graph clone = graph.clone();
  for (const Node* node : clone.topological_order())
    if (quantize::is_quantizer(*node) && !working.contains(node->name())) clone.reroute(node->output(), node->input(0));
  return clone;
}

}  // namespace miniqat::training
