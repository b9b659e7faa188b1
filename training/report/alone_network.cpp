#include "training/report/alone_network.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/text/error.h"
#include "quantize/op_roles.h"

namespace miniqat::training {
namespace {

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
        // The node's one output is what it reads.
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
  /// The quantizers that work at the point at hand.
  std::set<const Node*> working_;
  std::size_t first_ = 0;
  std::unordered_map<const Node*, Output> copies_;
};

}  // namespace

AloneNetwork alone_network(const Graph& network, const std::vector<QuantizationPoint>& points) {
  return AloneWriter(network, points).write();
}

}  // namespace miniqat::training
