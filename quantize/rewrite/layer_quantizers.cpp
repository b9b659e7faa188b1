#include "quantize/rewrite/layer_quantizers.h"

#include <unordered_map>
#include <unordered_set>

#include "quantize/fold/fold_pass.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/insert_fake_quant.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/residual_sums.h"

namespace miniqat::quantize {
namespace {

/// The rewrite asks layers in this order. Quantizers change it: of two parallel branches either may come first.
std::vector<std::string> layers_in_order(const Graph& in_float, const RewriteOptions& options) {
  Graph folded = in_float.clone();
  fold_batch_norms(folded, options.folding(), false);
  std::vector<std::string> names;
  for (const LayerMatch& match : find_layers(folded, options.scope).matches) names.push_back(match.layer->name());
  return names;
}

/// Hands out each quantizer once.
class Claims {
 public:
  void add(const Node* quantizer, std::vector<QuantizedTensor>& list) {
    if (quantizer == nullptr || !is_quantizer(*quantizer) || !taken_.insert(quantizer).second) return;
    list.push_back({quantizer->name(), quantizer->input(0).shape().elements()});
  }

  /// Of what the node gives, and those that layers read behind it.
  void add_output(const Node& producer, std::vector<QuantizedTensor>& list) {
    const Node* quantizer = quantizer_after(producer.output());
    add(quantizer, list);
    if (quantizer == nullptr) return;
    for (const Node* narrow : quantizers_for_layers(*quantizer)) add(narrow, list);
  }

 private:
  std::unordered_set<const Node*> taken_;
};

}  // namespace

std::vector<LayerQuantizers> layer_quantizers(const Graph& in_float, const RewriteOptions& options) {
  Graph graph = in_float.clone();
  create_eval_graph(graph, options);
  const LayerSearch search = find_layers(graph, options.scope);
  std::unordered_map<std::string, const LayerMatch*> by_name;
  for (const LayerMatch& match : search.matches) by_name.emplace(match.layer->name(), &match);
  Claims claims;
  std::vector<LayerQuantizers> result;
  for (const std::string& name : layers_in_order(in_float, options)) {
    const LayerMatch& match = *by_name.at(name);
    LayerQuantizers& layer = result.emplace_back(LayerQuantizers{.layer = name});
    claims.add(source_through(match.layer->input(match.weight_input), kIdentity).node, layer.weights);
    if (match.bypass) claims.add_output(*match.before_bypass(), layer.output);
    claims.add_output(*match.last(), layer.output);
    if (match.post_activation_bypass) claims.add_output(*match.post_activation_bypass, layer.output);
  }
  return result;
}

std::string unfolded_name(const std::string& layer) {
  constexpr std::string_view kFolded = "_Fold";
  return layer.ends_with(kFolded) ? layer.substr(0, layer.size() - kFolded.size()) : layer;
}

std::string pattern_of_layer(const std::string& layer) {
  std::string pattern;
  for (const char c : unfolded_name(layer)) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace miniqat::quantize
