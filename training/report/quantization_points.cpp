#include "training/report/quantization_points.h"

#include <algorithm>
#include <unordered_map>

#include "core/graph/reach.h"
#include "core/text/error.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/layer_bits.h"
#include "training/model_source.h"

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

class AloneWriter {
 public:
  AloneWriter(const Graph& network, const std::vector<QuantizationPoint>& points)
      : points_(points), result_{.graph = with_quantizers(network, {})} {
    const std::vector<Node*> order = network.topological_order();
    for (std::size_t i = 0; i < order.size(); ++i) position_.emplace(order[i], i);
  }

  AloneNetwork write() {
    for (const QuantizationPoint& point : points_) {
      result_.exact.push_back(in_float(point.tap()));
      result_.alone.push_back(alone(point));
    }
    return std::move(result_);
  }

 private:
  /// What readers of a tensor take where no quantizer works.
  Output in_float(Output output) const {
    while (quantize::is_quantizer(*output.node)) output = output.node->input(0);
    return {&result_.graph.at(output.node->name()), output.index};
  }

  Output alone(const QuantizationPoint& point) {
    working_.clear();
    for (const Node* quantizer : {point.weights, point.output})
      if (quantizer != nullptr) working_.insert(quantizer);
    if (working_.empty()) return {};
    first_ = position_.size();
    for (const Node* quantizer : working_) first_ = std::min(first_, position_.at(quantizer));
    copies_.clear();
    return copy_behind(point.tap());
  }

  /// The tensor in the point's own branch: that of the network in float unless a working quantizer is before it. The
  /// nodes between are copied, from the first to the last: a file may hold a longer chain than the call stack is deep.
  Output copy_behind(const Output& tap) {
    const std::vector<const Node*> between = nodes_up_to(*tap.node);
    for (const Node* node : between) {
      const bool is_bypassed = quantize::is_quantizer(*node) && !working_.contains(node);
      const bool differs = working_.contains(node) || std::ranges::any_of(node->inputs(), [&](const Output& input) {
                             return copies_.contains(input.node);
                           });
      if (!differs) continue;
      if (is_bypassed) {
        // Its one output is what it reads.
        copies_.emplace(node, copied(node->input(0)));
        continue;
      }
      std::vector<Output> inputs;
      for (const Output& input : node->inputs()) inputs.push_back(copied(input));
      const std::string name = result_.graph.unique_name(node->name() + "_alone");
      copies_.emplace(node, result_.graph.add(name, node->shared_op(), std::move(inputs)).output());
    }
    return copied(tap);
  }

  Output copied(const Output& output) const {
    const auto copy = copies_.find(output.node);
    if (copy == copies_.end()) return in_float(output);
    // The copy of a node that is bypassed is an output of another node.
    return quantize::is_quantizer(*output.node) ? copy->second : Output{copy->second.node, output.index};
  }

  /// The node and those that it depends on, none of which stands before all working quantizers, in their order.
  std::vector<const Node*> nodes_up_to(const Node& last) const {
    std::vector<const Node*> reached = {&last};
    std::set<const Node*> seen = {&last};
    for (std::size_t next = 0; next < reached.size(); ++next)
      for (const Output& input : reached[next]->inputs())
        if (position_.at(input.node) >= first_ && seen.insert(input.node).second) reached.push_back(input.node);
    std::ranges::sort(reached, {}, [&](const Node* node) { return position_.at(node); });
    return reached;
  }

  const std::vector<QuantizationPoint>& points_;
  AloneNetwork result_;
  std::unordered_map<const Node*, std::size_t> position_;
  /// The quantizers that work at the place at hand.
  std::set<const Node*> working_;
  std::size_t first_ = 0;
  std::unordered_map<const Node*, Output> copies_;
};

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

AloneNetwork alone_network(const Graph& network, const std::vector<QuantizationPoint>& points) {
  return AloneWriter(network, points).write();
}

}  // namespace miniqat::training
