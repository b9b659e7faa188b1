#include "training/report/graph_drawing.h"

#include <map>

#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"
#include "training/quantize/network_cost.h"

namespace miniqat::training {
namespace {

using quantize::FakeQuant;

/// Whether a node is drawn. The only parameters drawn are weights of layers, which have two axes or more.
bool is_shown(const Graph& graph, const Node& node) {
  if (!quantize::is_parameter(node)) return true;
  return node.output_specs()[0].shape.rank() > 1 && !quantize::is_range_only(graph, node);
}

std::string role_of(const Node& node) {
  if (node.as<Placeholder>() != nullptr) return "input";
  if (quantize::is_parameter(node)) return "parameter";
  if (quantize::is_layer(node)) return "layer";
  if (quantize::is_quantizer(node)) return quantize::quantizes_weights(node) ? "weights" : "activations";
  return "op";
}

std::string detail_of(const Node& node) {
  if (const auto* quantizer = node.as<FakeQuant>()) return quantize::quantizer_text(*quantizer);
  const Shape& shape = node.output_specs()[0].shape;
  const bool is_new = node.inputs().empty() || node.input(0).shape() != shape;
  return is_new ? concat(shape) : "";
}

/// The bytes of pictures are integers for a layer with quantized weights.
std::int64_t bits_of_edge(const Output& from, const Node& to) {
  constexpr std::int64_t kPictureBits = 8;
  const bool is_picture =
      quantize::source_through(from, quantize::OpRole::kKeepsRange).node->as<Placeholder>() != nullptr;
  if (is_picture && quantize::is_layer(to) && bits_of_tensor(to.input(1)) < 32) return kPictureBits;
  return bits_of_tensor(from);
}

}  // namespace

nlohmann::ordered_json draw_graph(const Graph& graph) {
  using Json = nlohmann::ordered_json;
  Json nodes = Json::array(), edges = Json::array();
  std::map<const Node*, std::size_t> numbers;
  for (const Node* node : graph.topological_order()) {
    if (!is_shown(graph, *node)) continue;
    numbers.emplace(node, nodes.size());
    nodes.push_back({{"name", node->name()},
                     {"type", node->type()},
                     {"role", role_of(*node)},
                     {"detail", detail_of(*node)},
                     {"is_output", graph.is_output(*node)}});
    for (const Output& input : node->inputs())
      if (const auto from = numbers.find(input.node); from != numbers.end())
        edges.push_back({from->second, numbers.at(node), bits_of_edge(input, *node)});
  }
  return {{"nodes", std::move(nodes)}, {"edges", std::move(edges)}};
}

}  // namespace miniqat::training
