#include "quantize/rewrite/layer_patterns.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/activations.h"
#include "layers/batch_norm.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/matmul.h"
#include "layers/parts.h"
#include "layers/reshape.h"
#include "layers/softmax.h"
#include "layers/space_to_batch.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// The ops that make weights out of Variables and factors (a factor may be reshaped to fit the weights).
constexpr std::array<std::string_view, 4> kBeforeWeights = {layers::Identity::kType, layers::Concat::kType,
                                                            layers::Mul::kType, layers::Reshape::kType};

/// The forms of a layer, from the weights to the last Add.
struct LayerPatterns {
  PatternRef variable = op({Variable::kType});
  PatternRef parameter = one_of({variable, op({layers::Identity::kType}, {variable})});
  PatternRef partitioned = op_over_all({layers::Concat::kType}, parameter);
  PatternRef stored =
      one_of({parameter, partitioned, op({layers::Identity::kType}, {one_of({parameter, partitioned})})});
  PatternRef corrected = op_unordered({layers::Mul::kType}, {stored, anything()});
  PatternRef folded = op_unordered({layers::Mul::kType}, {one_of({stored, corrected}), anything()});
  PatternRef weights = one_of({stored, folded});

  PatternRef layer_right = op(types_with(OpRole::kLayer), {anything(), weights});
  PatternRef layer_left = op({layers::MatMul::kType}, {weights, anything()});
  PatternRef layer = one_of({layer_right, layer_left});
  PatternRef batch_to_space = op({layers::BatchToSpaceNd::kType}, {layer});
  PatternRef layer_output = one_of({batch_to_space, layer});
  PatternRef reshape = op({layers::Reshape::kType}, {layer});
  PatternRef rearranged = one_of({layer_output, reshape});

  // The ops of a folded batch norm behind the layer.
  PatternRef per_channel = rank_up_to(1, anything());
  PatternRef correction_mul = op_unordered({layers::Mul::kType}, {rearranged, per_channel});
  PatternRef correction_add = op_unordered({layers::Add::kType}, {correction_mul, per_channel});
  PatternRef rescaling = op_unordered({layers::Mul::kType}, {rearranged, op({BatchNormScale::kType})});
  /// Only a batch norm that is folded late belongs to a layer that it reads directly.
  PatternRef batch_norm =
      op({layers::BatchNorm::kType}, {one_of({rescaling, rearranged}), anything(), anything(), anything(), anything()});

  PatternRef vector = rank_up_to(1, op(types_with(OpRole::kParameter)));
  PatternRef bias_vector = one_of({vector, rank_up_to(1, op({layers::Identity::kType}, {vector}))});
  PatternRef bias = one_of({op({layers::BiasAdd::kType}, {rearranged, anything()}),
                            op_unordered({layers::Add::kType}, {rearranged, bias_vector}),
                            op_unordered({layers::Add::kType}, {rearranged, op({BatchNormFold::kType})}),
                            op_unordered({layers::Add::kType}, {correction_add, per_channel}), batch_norm});
  PatternRef copy = op({layers::Identity::kType}, {one_of({bias, layer_output})});

  // Apart, because only their place among the alternatives keeps a bias Add from passing as a bypass.
  PatternRef bypass_of_bias = op_unordered({layers::Add::kType}, {one_of({bias, copy}), anything()});
  PatternRef bypass_of_layer = op_unordered({layers::Add::kType}, {layer_output, anything()});
  PatternRef linear = one_of({bypass_of_bias, copy, bias, bypass_of_layer, layer_output});

  PatternRef activation =
      one_of({op(types_with(OpRole::kClamp), {one_of({linear, reshape})}), op({layers::Identity::kType}, {linear})});
  PatternRef post_activation_bypass = op_unordered({layers::Add::kType}, {anything(), activation});

  PatternRef whole =
      one_of({post_activation_bypass, activation, one_of({bypass_of_bias, bias, bypass_of_layer, layer_output})});

  LayerMatch layer_match(const Match& match) const;
};

LayerMatch LayerPatterns::layer_match(const Match& match) const {
  LayerMatch found;
  found.layer = match.node(layer);
  found.weight_input = match.node(layer_left) ? 0 : 1;
  found.weights = match.tensor(weights);
  found.rearrangement = match.node(batch_to_space) ? match.node(batch_to_space) : match.node(reshape);
  found.correction_mul = match.node(correction_mul) ? match.node(correction_mul) : match.node(rescaling);
  found.correction_add = match.node(correction_add);
  found.bias = match.node(bias);
  found.copy = match.node(copy);
  found.bypass = match.node(bypass_of_bias) ? match.node(bypass_of_bias) : match.node(bypass_of_layer);
  found.activation = match.node(activation);
  found.post_activation_bypass = match.node(post_activation_bypass);
  return found;
}

/// The edges above the weights, each once.
void add_fused_weights(LayerMatch& match) {
  std::vector<const Node*> pending = {match.weights.node};
  std::set<std::pair<const Node*, const Node*>> seen;
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!is_one_of(node->type(), kBeforeWeights)) continue;
    for (const Output& input : node->inputs()) {
      const Node* producer = source_through(input, OpRole::kQuantizer).node;
      if (!seen.insert({producer, node}).second) continue;
      match.fused.push_back({producer, node, "weights of"});
      pending.push_back(producer);
    }
  }
}

void add_fused_edges(LayerMatch& match) {
  const std::vector<Node*> chain = match.chain();
  for (std::size_t i = 1; i < chain.size(); ++i) match.fused.push_back({chain[i - 1], chain[i], "computed with"});
  if (match.bias)
    for (const Output& operand : match.bias->inputs())
      if (match.bias->as<layers::BatchNorm>() || is_parameter(*source_through(operand, OpRole::kKeepsRange).node))
        match.fused.push_back({operand.node, match.bias, "bias of"});
  add_fused_weights(match);
}

std::size_t size_of(const LayerMatch& match) { return match.chain().size() + (match.post_activation_bypass ? 1 : 0); }

/// False for an Identity that is one reader among several: it is a copy then, not a part of the layer, and the
/// quantizer must come before it to serve the others too.
bool is_only_reader(const Graph& graph, const Node* identity) {
  if (!identity || !identity->as<layers::Identity>()) return true;
  const Output before = source_through(identity->input(0), OpRole::kQuantizer);
  const std::vector<Use> uses = uses_through(before, OpRole::kQuantizer);
  const auto readers = std::ranges::count_if(uses, [](const Use& use) { return !is_quantizer(*use.node); });
  const bool fetched = std::ranges::any_of(
      graph.outputs(), [&](const Output& output) { return source_through(output, OpRole::kQuantizer) == before; });
  return readers == 1 && !fetched;
}

/// False for a BatchNorm that only follows the layer, and for a bias behind a Reshape that moves the channels.
bool is_part_of_layer(const Node* bias, const Node* rearrangement) {
  if (!bias) return true;
  if (rearrangement && rearrangement->as<layers::Reshape>() &&
      rearrangement->input(0).shape().channels() != rearrangement->output().shape().channels())
    return false;
  return !bias->as<layers::BatchNorm>() || is_folded_late(*bias) || find_weight_scale(*bias);
}

/// From the layer to the BatchNorm that normalises its result only for the statistics of a folded twin, or empty.
std::vector<const Node*> way_to_statistics(const Node& layer) {
  for (const Use& use : uses_through(layer.output(), OpRole::kQuantizer | OpRole::kBeforeBatchNorm)) {
    if (use.input != 0 || !gives_statistics_only(*use.node)) continue;
    std::vector<const Node*> way = {&layer};
    std::vector<const Node*> between;
    for (const Node* node = use.node; node != &layer; node = node->input(0).node) between.push_back(node);
    way.insert(way.end(), between.rbegin(), between.rend());
    return way;
  }
  return {};
}

/// An output of one of these shows the numbers of a layer, or what they mean: what it reads is the network's output.
std::vector<std::string_view> types_behind_logits() {
  std::vector<std::string_view> types = types_with(OpRole::kKeepsRange);
  types.push_back(layers::Softmax::kType);
  return types;
}

std::string why_no_match(const Node& layer) {
  if (layer.as<layers::MatMul>()) return "neither operand comes from a Variable";
  const Node& producer = *source_through(layer.input(1), kQuantizerOrIdentity).node;
  return concat("its weights come from ", describe(producer), ", not from a Variable");
}

bool any_reader(const Node& node, const std::unordered_set<const Node*>& of) {
  for (int k = 0; k < std::ssize(node.output_specs()); ++k)
    if (std::ranges::any_of(node.uses(k), [&](const Use& use) { return of.contains(use.node); })) return true;
  return false;
}

/// The nodes from which an output is reached.
std::unordered_set<const Node*> reaching_an_output(const Graph& graph, const std::vector<Node*>& order) {
  std::unordered_set<const Node*> found;
  if (graph.outputs().empty()) return {order.begin(), order.end()};
  for (const Output& output : graph.outputs()) found.insert(output.node);
  for (auto node = order.rbegin(); node != order.rend(); ++node)
    if (any_reader(**node, found)) found.insert(*node);
  return found;
}

/// The ops of a graph that need the integers of what they read: those in scope that compute with them (layers, and
/// what gets a range of its own), and those that hand them on to such. Ops from which no output of the graph is reached
/// do not count; a graph that names no output is all of it reached.
class IntegerReaders {
 public:
  IntegerReaders(const Graph& graph, const Scope& scope) {
    if (!graph.outputs().empty()) {
      output_ = graph.outputs().front();
      shown_ = source_through(output_, behind_logits_);
    }
    const std::vector<Node*> order = graph.topological_order();
    const std::unordered_set<const Node*> reaching = reaching_an_output(graph, order);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& node = **it;
      const bool computes = (is_layer(node) || gets_range(node)) && scope.has(node);
      if (reaching.contains(&node) && (computes || hands_on(node))) readers_.insert(&node);
    }
  }

  /// Whether somebody beside `next` needs the integers of what `next` reads of `part`, the op before it: another
  /// reader, or the graph's first output. A reader behind a quantizer of its own has them.
  bool needed_beside(const Node& part, const Node& next) const {
    for (const Output& read : next.inputs()) {
      if (source_through(read, OpRole::kQuantizer) != part.output()) continue;
      const auto uses = read.node->uses(read.index);
      const bool is_shown = !is_one_of(next.type(), behind_logits_) && source_through(read, behind_logits_) == shown_;
      if (read == output_ || is_shown ||
          std::ranges::any_of(uses, [&](const Use& use) { return use.node != &next && readers_.contains(use.node); }))
        return true;
    }
    return false;
  }

 private:
  /// A quantizer behind another one (RewriteOptions::sums_bits) does, any other one is what its readers need.
  bool hands_on(const Node& node) const {
    const bool narrows = is_quantizer(node) && is_quantizer(*source_through(node.input(0), OpRole::kKeepsRange).node);
    return (keeps_range(node) || narrows) && any_reader(node, readers_);
  }

  const std::vector<std::string_view> behind_logits_ = types_behind_logits();
  /// The graph's first output, and what it shows.
  Output output_;
  Output shown_;
  std::unordered_set<const Node*> readers_;
};

/// Whether a part of the match before its end has readers who need its integers, which a fused result does not have.
/// What the bypass adds to gets a quantizer anyway; blocks of pixels (SpaceToBatchND) have no place for one.
bool is_read_inside(const IntegerReaders& readers, const LayerMatch& match) {
  const std::vector<Node*> chain = match.chain();
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const bool is_quantized = match.bypass && chain[i - 1] == match.before_bypass();
    if (is_quantized || chain[i]->as<layers::BatchToSpaceNd>()) continue;
    if (readers.needed_beside(*chain[i - 1], *chain[i])) return true;
  }
  return false;
}

/// A match and whether it is read inside, which is worse than to be small.
struct Candidate {
  LayerMatch match;
  bool is_read_inside = false;

  bool is_better_than(const Candidate& other) const {
    return is_read_inside == other.is_read_inside ? size_of(match) > size_of(other.match) : other.is_read_inside;
  }
};

std::unordered_map<const Node*, Candidate> best_matches(const Graph& graph, const Scope& scope) {
  const LayerPatterns patterns;
  const GraphMatcher matcher(graph, types_with(OpRole::kQuantizer));
  const IntegerReaders readers(graph, scope);
  std::unordered_map<const Node*, Candidate> best;
  for (const PatternRef& root : patterns.whole->alternatives)
    for (const Match& found : matcher.find(root)) {
      const LayerMatch match = patterns.layer_match(found);
      if (!is_only_reader(graph, match.activation) || !is_only_reader(graph, match.copy) ||
          !is_part_of_layer(match.bias, match.rearrangement))
        continue;
      const Candidate candidate = {match, is_read_inside(readers, match)};
      const auto [place, fresh] = best.try_emplace(match.layer, candidate);
      if (!fresh && candidate.is_better_than(place->second)) place->second = candidate;
    }
  return best;
}

}  // namespace

std::vector<Node*> LayerMatch::chain() const {
  std::vector<Node*> parts;
  for (Node* part : {layer, rearrangement, correction_mul, correction_add, bias, copy, bypass, activation})
    if (part) parts.push_back(part);
  return parts;
}

Node* LayerMatch::before_bypass() const {
  for (Node* part : {copy, bias, rearrangement})
    if (part) return part;
  return layer;
}

std::string LayerMatch::text() const {
  std::string text = "layer";
  if (rearrangement) text += concat(" + ", rearrangement->type());
  if (correction_mul) text += " + correction";
  if (bias) text += bias->as<layers::BatchNorm>() ? " + BatchNorm" : " + bias";
  if (copy) text += " + Identity";
  if (bypass) text += " + bypass";
  if (activation) text += concat(" + ", activation->type());
  if (post_activation_bypass) text += " + post-activation bypass";
  return text;
}

LayerSearch find_layers(const Graph& graph, std::string_view scope) {
  LayerSearch search{.scope = {std::string(scope)}};
  const std::unordered_map<const Node*, Candidate> best = best_matches(graph, search.scope);
  for (Node* node : graph.topological_order()) {
    if (!is_layer(*node)) continue;
    const auto found = best.find(node);
    if (!search.scope.has(*node))
      search.skips.push_back({node, search.scope.outside()});
    else if (found == best.end())
      search.skips.push_back({node, why_no_match(*node)});
    else if (const std::vector<const Node*> way = way_to_statistics(*node); !way.empty())
      search.skips.push_back({node, concat("kept for the statistics of ", describe(*way.back())), way});
    else
      search.matches.push_back(found->second.match);
  }
  for (LayerMatch& match : search.matches) add_fused_edges(match);
  return search;
}

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
