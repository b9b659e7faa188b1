#include "quantize/layer_patterns.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/error.h"
#include "quantize/graph_matcher.h"

namespace miniqat::quantize {
namespace {

constexpr std::array<std::string_view, 1> kQuantizer = {"FakeQuant"};
constexpr std::array<std::string_view, 2> kQuantizerOrIdentity = {"FakeQuant", "Identity"};
constexpr std::array<std::string_view, 3> kLayers = {"Conv2D", "DepthwiseConv2d", "MatMul"};

/// What a layer may look like, from the weights to the last Add.
struct LayerPatterns {
  PatternRef variable = op({"Variable"});
  PatternRef parameter = one_of({variable, op({"Identity"}, {variable})});
  PatternRef partitioned = op_over_all({"Concat"}, parameter);
  PatternRef stored = one_of({parameter, partitioned, op({"Identity"}, {one_of({parameter, partitioned})})});
  PatternRef folded = op_unordered({"Mul"}, {stored, anything()});
  PatternRef weights = one_of({stored, folded});

  PatternRef layer_right = op({"Conv2D", "DepthwiseConv2d", "MatMul"}, {anything(), weights});
  PatternRef layer_left = op({"MatMul"}, {weights, anything()});
  PatternRef layer = one_of({layer_right, layer_left});
  PatternRef batch_to_space = op({"BatchToSpaceND"}, {layer});
  PatternRef layer_output = one_of({batch_to_space, layer});

  PatternRef vector = rank_up_to(1, op({"Variable", "Constant"}));
  PatternRef bias_vector = one_of({vector, rank_up_to(1, op({"Identity"}, {vector}))});
  PatternRef bias =
      one_of({op({"BiasAdd"}, {layer_output, anything()}), op_unordered({"Add"}, {layer_output, bias_vector})});

  // Apart, because only their place among the alternatives keeps a bias Add from passing as a bypass.
  PatternRef bypass_of_bias = op_unordered({"Add"}, {bias, anything()});
  PatternRef bypass_of_layer = op_unordered({"Add"}, {layer_output, anything()});
  PatternRef linear = one_of({bypass_of_bias, bias, bypass_of_layer, layer_output});

  PatternRef activation = op({"Relu", "Relu6", "Identity"}, {linear});
  PatternRef post_activation_bypass = op_unordered({"Add"}, {anything(), activation});

  PatternRef whole = one_of({post_activation_bypass, activation, linear});

  LayerMatch layer_match(const Match& match) const;
};

LayerMatch LayerPatterns::layer_match(const Match& match) const {
  LayerMatch found;
  found.layer = match.node(layer);
  found.weight_input = match.node(layer_left) ? 0 : 1;
  found.weights = match.tensor(weights);
  found.batch_to_space = match.node(batch_to_space);
  found.bias = match.node(bias);
  found.bypass = match.node(bypass_of_bias) ? match.node(bypass_of_bias) : match.node(bypass_of_layer);
  found.activation = match.node(activation);
  found.post_activation_bypass = match.node(post_activation_bypass);
  return found;
}

std::size_t size_of(const LayerMatch& match) { return match.chain().size() + (match.post_activation_bypass ? 1 : 0); }

/// False for an Identity that is one reader among several: it is a copy then, not the layer's end, and the quantizer
/// must come before it to serve the others too.
bool activation_counts(const Graph& graph, const LayerMatch& match) {
  if (!match.activation || match.activation->type() != "Identity") return true;
  const Output before = source_through(match.activation->input(0), kQuantizer);
  const std::vector<Use> uses = uses_through(before, kQuantizer);
  const auto readers = std::ranges::count_if(uses, [](const Use& use) { return use.node->type() != "FakeQuant"; });
  const bool fetched = std::ranges::any_of(
      graph.outputs(), [&](const Output& output) { return source_through(output, kQuantizer) == before; });
  return readers == 1 && !fetched;
}

/// The BatchNorm that normalises the layer's result, or null.
const Node* batch_norm_after(const LayerMatch& match) {
  for (const Node* node : {match.layer, match.batch_to_space, match.bias}) {
    if (!node) continue;
    for (const Use& use : uses_through(node->output(), kQuantizerOrIdentity))
      if (use.node->type() == "BatchNorm" && use.input == 0) return use.node;
  }
  return nullptr;
}

std::string why_no_match(const Node& layer) {
  if (layer.type() == "MatMul") return "neither operand comes from a Variable";
  const Node& producer = *source_through(layer.input(1), kQuantizerOrIdentity).node;
  return concat("its weights come from ", describe(producer), ", not from a Variable");
}

std::unordered_map<const Node*, LayerMatch> largest_matches(const Graph& graph) {
  const LayerPatterns patterns;
  const GraphMatcher matcher(graph, {"FakeQuant"});
  std::unordered_map<const Node*, LayerMatch> largest;
  for (const PatternRef& root : patterns.whole->alternatives)
    for (const Match& found : matcher.find(root)) {
      const LayerMatch match = patterns.layer_match(found);
      if (!activation_counts(graph, match)) continue;
      const auto [place, fresh] = largest.try_emplace(match.layer, match);
      if (!fresh && size_of(match) > size_of(place->second)) place->second = match;
    }
  return largest;
}

}  // namespace

std::vector<Node*> LayerMatch::chain() const {
  std::vector<Node*> parts;
  for (Node* part : {layer, batch_to_space, bias, bypass, activation})
    if (part) parts.push_back(part);
  return parts;
}

Node* LayerMatch::before_bypass() const {
  if (bias) return bias;
  return batch_to_space ? batch_to_space : layer;
}

std::string LayerMatch::text() const {
  std::string text = "layer";
  if (batch_to_space) text += " + BatchToSpaceND";
  if (bias) text += " + bias";
  if (bypass) text += " + bypass";
  if (activation) text += concat(" + ", activation->type());
  if (post_activation_bypass) text += " + post-activation bypass";
  return text;
}

LayerSearch find_layers(const Graph& graph, std::string_view scope) {
  const std::unordered_map<const Node*, LayerMatch> largest = largest_matches(graph);
  LayerSearch search;
  for (Node* node : graph.topological_order()) {
    if (!is_layer(*node)) continue;
    const auto found = largest.find(node);
    if (!in_scope(node->name(), scope))
      search.skips.push_back({node, concat("outside scope \"", scope, "\"")});
    else if (found == largest.end())
      search.skips.push_back({node, why_no_match(*node)});
    else if (const Node* batch_norm = batch_norm_after(found->second))
      search.skips.push_back({node, concat("left for batch-norm folding: ", describe(*batch_norm), " follows")});
    else
      search.matches.push_back(found->second);
  }
  return search;
}

bool is_layer(const Node& node) { return is_one_of(node.type(), kLayers); }

bool in_scope(std::string_view name, std::string_view scope) {
  if (scope.ends_with('/')) scope.remove_suffix(1);
  return scope.empty() || (name.size() > scope.size() && name.starts_with(scope) && name[scope.size()] == '/');
}

}  // namespace miniqat::quantize
