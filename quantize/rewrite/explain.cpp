#include "quantize/rewrite/explain.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/graph/losses.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// LeftFloat::next, or null.
const Node* next_of(const Node& node, const Decisions& decisions) {
  const auto left = decisions.left_float.find(&node);
  return left != decisions.left_float.end() ? left->second.next : nullptr;
}

/// Whether an op outside of layers that gets a range has one: its own, or that of the op that follows.
bool is_in_integers(const Node& node, const Decisions& decisions) {
  return quantizer_after(node.output()) || next_of(node, decisions);
}

/// Says of every edge what became of it.
class EdgeClassifier {
 public:
  EdgeClassifier(const Graph& graph, const Decisions& decisions) : decisions_(decisions) {
    for (const Node* node : graph.topological_order())
      if (keeps_range(*node)) origins_[node] = origin_of(node->input(0));
    for (const LayerMatch& match : decisions.search.matches) {
      for (const Node* part : match.chain()) matched_.emplace(part, &match);
      for (const FusedEdge& edge : match.fused)
        fused_.emplace(std::pair(edge.producer, edge.consumer), concat(edge.role, " ", match.layer->name()));
    }
    for (const LayerSkip& skip : decisions.search.skips) {
      skipped_.emplace(skip.layer, skip.reason);
      statistics_.insert(skip.for_statistics.begin(), skip.for_statistics.end());
    }
  }

  EdgeReport classify(const Node& consumer, int input) const {
    const Output taken = consumer.input(input);
    const Output tensor = source_through(taken, OpRole::kQuantizer);
    const auto report = [&](EdgeStatus status, std::string reason) {
      return EdgeReport{tensor.name(), consumer.name(), status, std::move(reason)};
    };
    if (statistics_.contains(&consumer)) return report(EdgeStatus::kStatistics, "for batch norm, while it trains");
    if (is_quantizer(*taken.node)) return report(EdgeStatus::kQuantized, taken.node->name());
    if (is_target({const_cast<Node*>(&consumer), input}) && tensor.spec().dtype == DType::kFloat32)
      return report(EdgeStatus::kInput, "the target of a loss, nothing to quantize");
    if (const auto fused = fused_.find({tensor.node, &consumer}); fused != fused_.end())
      return report(EdgeStatus::kFused, fused->second);
    if (input > 0 && is_unfolded_batch_norm(consumer) && is_in_integers(consumer, decisions_))
      return report(EdgeStatus::kFused, "the batch norm's product and sum");
    if (is_fold(consumer) || is_fold(*tensor.node)) return report(EdgeStatus::kFused, "folded batch norm");
    if (const Node* next = next_of(*tensor.node, decisions_))
      return report(EdgeStatus::kFused, "quantized after " + next->name());

    const Output origin = origin_of(tensor);
    // A placeholder may bring a layer's input, but a tensor in the place of weights has no range.
    if (const auto skipped = skipped_.find(&consumer);
        skipped != skipped_.end() && input == 1 && !is_quantizer(*origin.node))
      return report(EdgeStatus::kLeftFloat, skipped->second);
    if (is_quantizer(*origin.node)) return report(EdgeStatus::kPassedThrough, "range of " + origin.node->name());
    if (origin.node->as<Placeholder>()) {
      if (origin.spec().dtype != DType::kFloat32)
        return report(EdgeStatus::kInput, concat(name_of(origin.spec().dtype), ", nothing to quantize"));
      const std::string through = origin == tensor ? "" : concat(origin.name(), ": ");
      return report(EdgeStatus::kInput, through + "the data set brings scale and zero point");
    }
    return report(EdgeStatus::kLeftFloat, why_float(tensor, consumer));
  }

 private:
  Output origin_of(Output tensor) const {
    const auto found = origins_.find(tensor.node);
    return found == origins_.end() ? tensor : found->second;
  }

  std::string why_float(Output tensor, const Node& consumer) const {
    const Node& origin = *origin_of(tensor).node;
    if (is_loss(consumer)) return "the loss is computed in float";
    if (origin.as<layers::BatchNorm>() && origin_of(tensor).index > 0) return "a statistic of a batch norm";
    if (consumer.as<layers::BatchNorm>() && is_parameter(origin)) return "a parameter of a batch norm that stays float";
    const std::string through = &origin == tensor.node ? "" : concat("passes on ", origin.name(), ": ");
    return through + why_float_origin(origin);
  }

  std::string why_float_origin(const Node& origin) const {
    if (is_parameter(origin)) return "a parameter, but no layer's weights";
    if (is_loss(origin)) return "the loss is computed in float";
    if (const auto skipped = skipped_.find(&origin); skipped != skipped_.end()) return skipped->second;
    if (!decisions_.search.scope.has(origin)) return decisions_.search.scope.outside();
    if (const Node* quantizer = quantizer_after(origin.output()))
      return concat("read beside its quantizer ", quantizer->name());
    if (const auto match = matched_.find(&origin); match != matched_.end())
      return concat("read inside ", match->second->layer->name(), "'s match, before the quantizer");
    if (const auto left = decisions_.left_float.find(&origin); left != decisions_.left_float.end())
      return left->second.reason;
    return concat(origin.type(), " outside of any match stays float");
  }

  const Decisions& decisions_;
  /// The op that made the range of each op that only keeps one.
  std::unordered_map<const Node*, Output> origins_;
  std::unordered_map<const Node*, const LayerMatch*> matched_;
  std::unordered_map<const Node*, std::string> skipped_;
  /// Edges (producer, consumer) that have no existence in integers, with the reason.
  std::map<std::pair<const Node*, const Node*>, std::string> fused_;
  /// From a layer kept for its statistics to its BatchNorm.
  std::unordered_set<const Node*> statistics_;
};

std::string arrow(const Node& from, const std::string& to) { return concat(from.name(), " -> ", to); }

/// " (4 bits, per channel)": what is not as `usual`, the settings for all layers, has it.
std::string own_settings(const FakeQuantAttributes& own, const FakeQuantAttributes& usual) {
  std::string text;
  const auto say = [&](const std::string& part) { text += (text.empty() ? " (" : ", ") + part; };
  if (own.bits != usual.bits) say(concat(own.bits, " bits"));
  if (own.symmetric != usual.symmetric) say(own.symmetric ? "symmetric" : "asymmetric");
  // A fixed range belongs to the op, not to the settings.
  const RangeKindTraits& kind = traits_of(own.range);
  if (kind.changes() && own.range != usual.range) say(std::string(kind.text));
  if (own.per_channel != usual.per_channel) say(own.per_channel ? "per channel" : "per tensor");
  if (kind.averages && own.ema_decay != usual.ema_decay) say(concat("decay ", own.ema_decay));
  return text.empty() ? "" : text + ")";
}

std::string quantizer_text(const TensorDecision& tensor, const LayerSettings& usual) {
  if (!tensor.quantizer()) return arrow(*tensor.producer, "left float");
  const auto own = [&](const Node& node) {
    return node.name() + own_settings(*node.as<FakeQuant>(), usual.output.attributes);
  };
  std::string text = arrow(*tensor.producer, own(*tensor.quantizer()));
  for (const Node* narrow : tensor.for_layers()) text += ", for layers " + own(*narrow);
  return text;
}

std::string weights_text(const TensorDecision& weights, const LayerSettings& usual) {
  if (!weights.quantizer()) return arrow(*weights.producer, "left float");
  FakeQuantAttributes wanted = usual.weights.attributes;
  if (!weights.why.empty()) wanted.per_channel = false;
  return arrow(*weights.producer, weights.quantizer()->name()) +
         own_settings(*weights.quantizer()->as<FakeQuant>(), wanted) +
         (weights.why.empty() ? "" : concat(" (", weights.why, ")"));
}

MatchReport describe_match(const LayerDecision& layer, const LayerSettings& usual) {
  const LayerMatch& match = *layer.match;
  std::string text = concat(match.text(), ": weights ", weights_text(layer.weights, usual));
  for (const TensorDecision& tensor : layer.outputs) {
    text += tensor.producer == match.last()                   ? ", output "
            : tensor.producer == match.post_activation_bypass ? ", after the bypass "
                                                              : ", before the bypass ";
    text += tensor.left_to ? arrow(*tensor.producer, concat("no quantizer, a ", tensor.left_to->type(), " follows"))
                           : quantizer_text(tensor, usual);
  }
  return {match.layer->name(), true, text, false};
}

/// A tensor that several layers share belongs to the first of them.
std::vector<LayerQuantizers> quantizers_by_layer(const Decisions& decisions) {
  std::unordered_set<const Node*> taken;
  const auto hand_out = [&](const Node* quantizer, std::vector<QuantizedTensor>& list) {
    if (quantizer == nullptr || !taken.insert(quantizer).second) return;
    list.push_back({quantizer->name(), quantizer->input(0).shape().elements()});
  };
  std::vector<LayerQuantizers> result;
  for (const LayerDecision& decision : decisions.layers) {
    LayerQuantizers& layer = result.emplace_back(LayerQuantizers{.layer = decision.match->layer->name()});
    hand_out(decision.weights.quantizer(), layer.weights);
    for (const TensorDecision& tensor : decision.outputs) {
      hand_out(tensor.quantizer(), layer.output);
      for (const Node* narrow : tensor.for_layers()) hand_out(narrow, layer.output);
    }
  }
  return result;
}

/// A converter finds the range of what never changes by itself; weights that are left float have no such excuse.
bool is_parameter_operand(const Graph& graph, const EdgeReport& edge) {
  return !is_layer(graph.at(edge.consumer)) && is_parameter(*graph.output_at(edge.tensor).node);
}

}  // namespace

RewriteReport report_rewrite(const Graph& graph, const Decisions& decisions) {
  RewriteReport report;
  report.quantizers = quantizers_by_layer(decisions);
  std::unordered_map<const Node*, MatchReport> of_layer;
  for (const LayerDecision& layer : decisions.layers)
    of_layer[layer.match->layer] = describe_match(layer, decisions.others);
  for (const LayerSkip& skip : decisions.search.skips)
    of_layer[skip.layer] = {skip.layer->name(), false, skip.reason, skip.is_for_statistics()};
  const EdgeClassifier classifier(graph, decisions);
  for (const Node* node : graph.topological_order()) {
    if (is_quantizer(*node)) continue;
    if (const auto layer = of_layer.find(node); layer != of_layer.end()) report.matches.push_back(layer->second);
    for (std::size_t i = 0; i < node->inputs().size(); ++i)
      report.edges.push_back(classifier.classify(*node, static_cast<int>(i)));
  }
  return report;
}

void describe_unfolded(const Graph& graph, const Decisions& decisions, std::vector<BatchNormReport>& batch_norms) {
  constexpr const char* kLine = "; in evaluation a product and a sum for each channel, ";
  for (BatchNormReport& line : batch_norms) {
    const Node* node = graph.find(line.batch_norm);
    if (!node || !is_unfolded_batch_norm(*node)) continue;
    if (const Node* quantizer = quantizer_after(node->output()))
      line.text += concat(kLine, "quantized by ", quantizer->name());
    else if (const Node* next = next_of(*node, decisions))
      line.text += concat(kLine, "quantized after ", next->name());
    else if (const auto left = decisions.left_float.find(node); left != decisions.left_float.end())
      line.text += concat("; left float: ", left->second.reason);
  }
}

std::vector<std::string> unquantized_edges(const Graph& graph, const Decisions& decisions,
                                           const RewriteReport& report) {
  std::vector<std::string> texts;
  std::unordered_set<const Node*> bypasses;
  for (const LayerDecision& layer : decisions.layers)
    bypasses.insert({layer.match->bypass, layer.match->post_activation_bypass});
  const auto computes_in_integers = [&](const Node& node) {
    return is_layer(node) || bypasses.contains(&node) || (gets_range(node) && quantizer_after(node.output()));
  };
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  for (const EdgeReport& edge : report.edges) {
    const Node& consumer = graph.at(edge.consumer);
    if (edge.status == EdgeStatus::kLeftFloat && decisions.search.scope.has(consumer) && !unused.contains(&consumer) &&
        computes_in_integers(consumer) && !is_parameter_operand(graph, edge))
      texts.push_back(concat(edge.tensor, " -> ", edge.consumer, " (", edge.reason, ")"));
  }
  std::unordered_set<std::string_view> listed;
  for (const EdgeReport& edge : report.edges)
    if (edge.status == EdgeStatus::kLeftFloat) listed.insert(edge.consumer);
  for (const LayerSkip& skip : decisions.search.skips)
    if (!listed.contains(skip.layer->name()) && !skip.is_unused && !skip.is_for_statistics() &&
        decisions.search.scope.has(*skip.layer))
      texts.push_back(concat(skip.layer->name(), " (", skip.reason, ")"));
  for (const LayerDecision& layer : decisions.layers)
    for (const TensorDecision& tensor : layer.outputs)
      if (tensor.producer == layer.match->last() && !tensor.quantizer())
        texts.push_back(
            concat(tensor.producer->name(), ", the output of ", layer.match->layer->name(), " (", tensor.why, ")"));
  return texts;
}

std::string note_on_float_edges(const Graph& graph, const RewriteReport& report) {
  const EdgeReport* first = nullptr;
  std::size_t edges = 0;
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  for (const EdgeReport& edge : report.edges) {
    const Node& consumer = graph.at(edge.consumer);
    if (edge.status != EdgeStatus::kLeftFloat || !is_layer(consumer) || unused.contains(&consumer)) continue;
    if (edges++ == 0) first = &edge;
  }
  if (edges == 0) return "";
  return concat(counted(edges, "edge"), " into layers left float: ", first->tensor, " -> ", first->consumer, " (",
                first->reason, ")", edges == 1 ? "" : ", ...");
}

std::string note_on_still_batch_norms(const Graph& graph) {
  const Node* first = nullptr;
  std::size_t norms = 0;
  for (const Node* node : graph.nodes()) {
    const auto* norm = node->as<layers::BatchNorm>();
    if (norm && !norm->is_training && norms++ == 0) first = node;
  }
  if (norms == 0) return "";
  return concat(counted(norms, "batch norm"), norms == 1 ? " keeps its" : " keep their",
                " moving statistics in training (is_training false): ", first->name(), norms == 1 ? "" : ", ...");
}

}  // namespace miniqat::quantize
