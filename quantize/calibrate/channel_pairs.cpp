#include "quantize/calibrate/channel_pairs.h"

#include <algorithm>
#include <map>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "layers/layers.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// The only reader of a tensor; a null node for none or several, and for an output of the graph.
Use sole_use(const Graph& graph, Output tensor) {
  const auto uses = tensor.node->uses(tensor.index);
  return uses.size() == 1 && !graph.is_output(tensor) ? uses.front() : Use{};
}

/// The Variable behind a tensor (through Identity), if nobody else reads it; null otherwise.
const Node* own_variable(const Graph& graph, Output tensor) {
  for (; sole_use(graph, tensor).node != nullptr; tensor = tensor.node->input(0)) {
    if (tensor.node->as<Variable>() != nullptr) return tensor.node;
    if (!tensor.node->as<layers::Identity>()) return nullptr;
  }
  return nullptr;
}

bool keeps_last_axis(const Node& node) {
  const int last = node.input(0).shape().rank() - 1;
  if (const auto* pad = node.as<layers::Pad>()) return pad->paddings.back() == std::array<std::int64_t, 2>{0, 0};
  if (const auto* slice = node.as<layers::Slice>())
    return std::ranges::none_of(slice->axes, [&](std::int64_t axis) { return axis == -1 || axis == last; });
  if (const auto* mean = node.as<layers::Mean>()) {
    const auto& axes = mean->axes;
    return !axes.empty() && std::ranges::none_of(axes, [&](std::int64_t axis) { return axis == -1 || axis == last; });
  }
  if (const auto* blocks = node.as<layers::BatchToSpaceNd>()) return std::ssize(blocks->block_shape) < last;
  if (const auto* blocks = node.as<layers::SpaceToBatchNd>()) return std::ssize(blocks->block_shape) < last;
  return true;
}

/// Whether position p on the last axis has channel p % channels behind the node if it has it before: a Reshape keeps
/// the order of the elements.
bool keeps_channels(const Node& node, std::int64_t channels) {
  return keeps_last_axis(node) && node.output().shape().rank() > 0 && node.output().shape().channels() % channels == 0;
}

/// Whether f(s x) = s f(x) for s > 0, channel by channel; Relu6 below 6.
bool is_homogeneous(const Node& node) {
  const bool clamps = is_clamp(node) && !node.as<layers::Clip>();
  return clamps || keeps_range(node) || node.as<layers::AvgPool>() || node.as<layers::Mean>();
}

/// The vector that a BiasAdd, or an Add of a layer's result and a parameter, adds; a null node for anything else.
Output added_vector(const Use& use) {
  const Node& node = *use.node;
  if (!node.as<layers::BiasAdd>() && !node.as<layers::Add>()) return {};
  if (node.as<layers::BiasAdd>() && use.input != 0) return {};
  const Output other = node.input(1 - use.input);
  return other.shape().rank() == 1 && is_parameter(*source_through(other, kIdentity).node) ? other : Output{};
}

/// Finds what follows the layer. The weights are there.
void find_normalisation(const Graph& graph, ChannelLayer& found) {
  const std::int64_t channels = found.outputs();
  for (;;) {
    const Use use = sole_use(graph, found.linear);
    if (use.node == nullptr) return;
    if (use.node->as<layers::BatchNorm>() && use.input == 0) {
      found.linear = use.node->output();
      found.batch_norm = use.node;
      for (const int k : {1, 2})
        if (own_variable(graph, use.node->input(k)) == nullptr)
          found.why_not = concat("gamma and beta of ", describe(*use.node), " are not Variables of its own");
      return;
    }
    if (const Output vector = added_vector(use); vector.node != nullptr) {
      found.linear = use.node->output();
      found.bias = own_variable(graph, vector);
      if (found.bias == nullptr || vector.shape().elements() != channels)
        found.why_not = concat("the bias of ", describe(*use.node), " is not a Variable of its own");
      return;
    }
    if (!has_role(*use.node, OpRole::kBeforeBatchNorm) || !keeps_channels(*use.node, channels) ||
        use.node->output().shape().channels() != channels)
      return;
    found.linear = use.node->output();
  }
}

ChannelLayer examine(const Graph& graph, const Node& layer, const std::string& scope) {
  ChannelLayer found{.layer = &layer, .weights = own_variable(graph, layer.input(1)), .linear = layer.output()};
  const auto* product = layer.as<layers::MatMul>();
  if (!in_scope(layer.name(), scope))
    found.why_not = concat("it is not in the scope ", quote(scope));
  else if (found.weights == nullptr || (product != nullptr && product->transpose_a))
    found.why_not = "its weights are not a Variable of its own";
  else
    find_normalisation(graph, found);
  return found;
}

/// From the first layer on to the next one. Throws away nothing: `why_not` of the pair's first layer says why there is
/// none.
ChannelPair follow(const Graph& graph, const ChannelLayer& first) {
  ChannelPair pair{.first = first, .second = {}, .before_clamp = first.linear};
  const std::int64_t channels = first.outputs();
  for (Output tensor = first.linear;;) {
    const Use use = sole_use(graph, tensor);
    std::string& why_not = pair.first.why_not;
    if (graph.is_output(tensor))
      why_not = concat(describe(*tensor.node), " is an output of the graph");
    else if (use.node == nullptr)
      why_not = concat(describe(*tensor.node), " has ", counted(tensor.node->uses(tensor.index).size(), "reader"));
    else if (use.input != 0 || !(is_layer(*use.node) || is_homogeneous(*use.node)))
      why_not = concat(describe(*use.node), " follows");
    else if (is_layer(*use.node)) {
      pair.second.layer = use.node;
      return pair;
    } else if (!keeps_channels(*use.node, channels))
      why_not = concat(describe(*use.node), " moves the channels");
    if (!why_not.empty()) return pair;
    if (is_clamp(*use.node) && pair.activation == nullptr) pair.activation = use.node;
    if (use.node->as<layers::Relu6>() && !pair.has_relu6) {
      pair.has_relu6 = true;
      pair.before_clamp = tensor;
    }
    tensor = use.node->output();
  }
}

}  // namespace

std::int64_t ChannelLayer::inputs() const {
  const Shape& shape = weights->output().shape();
  const auto* product = layer->as<layers::MatMul>();
  return shape[product != nullptr && product->transpose_b ? -1 : -2];
}

std::int64_t ChannelLayer::outputs() const { return layer->output().shape().channels(); }

WeightPlace place_of(const ChannelLayer& layer, std::int64_t element) {
  const std::int64_t inputs = layer.inputs(), outputs = layer.outputs();
  if (layer.layer->as<layers::DepthwiseConv2d>())
    return {.input = element % outputs / (outputs / inputs), .output = element % outputs};
  const auto* product = layer.layer->as<layers::MatMul>();
  if (product != nullptr && product->transpose_b) return {.input = element % inputs, .output = element / inputs};
  return {.input = element / outputs % inputs, .output = element % outputs};
}

PairSearch find_channel_pairs(const Graph& graph, const std::string& scope) {
  PairSearch search;
  std::vector<const Node*> order;
  std::map<const Node*, ChannelLayer> layers;
  for (const Node* node : graph.topological_order()) {
    if (!is_layer(*node)) continue;
    order.push_back(node);
    layers.emplace(node, examine(graph, *node, scope));
  }
  for (const Node* node : order) {
    const ChannelLayer& first = layers.at(node);
    ChannelPair pair = first.why_not.empty() ? follow(graph, first) : ChannelPair{.first = first, .second = {}};
    std::string reason = pair.first.why_not;
    if (reason.empty()) {
      pair.second = layers.at(pair.second.layer);
      if (!pair.second.why_not.empty()) reason = concat(describe(*pair.second.layer), ": ", pair.second.why_not);
    }
    if (reason.empty())
      search.pairs.push_back(std::move(pair));
    else
      search.left_out.push_back({node->name(), reason});
  }
  return search;
}

}  // namespace miniqat::quantize
