#include "quantize/rewrite/decide.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "layers/conv2d.h"
#include "layers/matmul.h"
#include "layers/reshape.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/fold/spelled_out_batch_norm.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

constexpr std::array<std::string_view, 2> kReshapeOrIdentity = {layers::Reshape::kType, layers::Identity::kType};
/// The start of ranges, as in tf.contrib.quantize: the output of a whole layer is taken for that of a Relu6.
constexpr InitialRange kNotNegative = {.min = 0, .max = 6};
constexpr InitialRange kAroundZero = {.min = -6, .max = 6};

/// What a clamp leaves of kAroundZero, with 0.
InitialRange start_of(Range<float> bounds) {
  return {.min = std::clamp<double>(bounds.min, kAroundZero.min, 0),
          .max = std::clamp<double>(bounds.max, 0, kAroundZero.max)};
}

/// Among integers a table, or a scale and shift.
bool is_function(const Node& node) { return has_role(node, OpRole::kTable) || scale_shift_input(node); }

using TensorKey = std::pair<const Node*, int>;
TensorKey key_of(Output tensor) { return {tensor.node, tensor.index}; }

/// The number of the last axes of the layer's weights that are its output channel; 0 if it is another axis.
int weight_channel_axes(const LayerMatch& match) {
  if (match.layer->as<layers::DepthwiseConv2d>()) return 2;
  if (match.layer->as<layers::Conv2d>()) return 1;
  const auto* matmul = match.layer->as<layers::MatMul>();
  return match.weight_input == 1 && matmul && !matmul->transpose_b ? 1 : 0;
}

TensorKey weights_key(const LayerMatch& match) { return key_of(source_through(match.weights, kIdentity)); }

/// weight_channel_axes() by weights_key(), as layers may share their weights: 0 where these differ.
std::map<TensorKey, int> shared_channel_axes(const std::vector<LayerMatch>& matches) {
  std::map<TensorKey, int> shared;
  for (const LayerMatch& match : matches) {
    const int axes = weight_channel_axes(match);
    const auto [known, fresh] = shared.try_emplace(weights_key(match), axes);
    if (!fresh && known->second != axes) known->second = 0;
  }
  return shared;
}

/// The graph's outputs, its layers, and all that these are computed from; every node if no output is named. Others
/// belong to a loss that ops compute.
std::unordered_set<const Node*> needed_nodes(const Graph& graph) {
  const std::vector<Node*> all = graph.topological_order();
  if (graph.outputs().empty()) return {all.begin(), all.end()};
  std::vector<Output> ends = graph.outputs();
  for (const Node* node : all)
    if (is_layer(*node)) ends.push_back(node->output());
  return nodes_behind(ends);
}

class Decider {
 public:
  Decider(const Graph& graph, LayerSearch search, const RewriteOptions& options, bool is_training)
      : graph_(graph),
        settings_(graph, search.matches, options),
        channel_axes_(shared_channel_axes(search.matches)),
        unused_(unused_nodes(graph)),
        needed_(needed_nodes(graph)),
        decisions_{.search = std::move(search),
                   .is_training = is_training,
                   .others = settings_.behind_layers(),
                   .before_layers = settings_.before_layers(),
                   .inputs = settings_.of_inputs(),
                   .behind_layers = nodes_behind_layers(graph.topological_order()),
                   .sums = ResidualSums(graph),
                   .bn_fold = options.bn_fold,
                   .freeze_delay = options.freeze_bn_delay.value_or(-1),
                   .misses_pools = options.float_pools,
                   .misses_inputs = options.input_bits && !options.quantize_input,
                   .strict = options.strict} {}

  void note_unwanted(bool quantize_input, bool float_pools) {
    for (const Node* node : graph_.nodes()) {
      if (!quantize_input && node->as<Placeholder>()) decisions_.unwanted.emplace(node, "quantize_input");
      if (!float_pools || !is_pool(*node)) continue;
      decisions_.unwanted.emplace(node, "float_pools");
      if (!unused_.contains(node)) decisions_.misses_pools = false;
    }
  }

  void quantize_inputs() {
    std::vector<Output> pending;
    for (const Node* layer : graph_.topological_order())
      if (is_layer(*layer) && decisions_.search.scope.has(*layer) && !unused_.contains(layer))
        pending.insert(pending.end(), layer->inputs().begin(), layer->inputs().end());
    std::unordered_set<const Node*> seen;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const Output tensor = pending[i];
      if (!seen.insert(tensor.node).second) continue;
      if (tensor.node->as<Placeholder>() && !row_after(tensor))
        add_activation_quantizer(tensor, tensor.node->name() + "/input_quant", decisions_.inputs.output, kAroundZero);
      else if (keeps_range(*tensor.node))
        pending.push_back(tensor.node->input(0));
      else if (gets_range(*tensor.node))
        pending.insert(pending.end(), tensor.node->inputs().begin(), tensor.node->inputs().end());
    }
  }

  void quantize_layers() {
    for (const LayerMatch& match : decisions_.search.matches) {
      const LayerBits* bits = settings_.patterns().first_match(match.layer->name());
      LayerDecision& layer = decisions_.layers.emplace_back(LayerDecision{
          .match = &match, .settings = settings_.of(match, bits), .by_pattern = settings_.by_pattern(bits)});
      quantize_weights(layer);
      quantize_outputs(layer);
    }
  }

  void requantize_between_layers() {
    // Nodes whose output has a quantizer's range, and nodes whose output has the input's.
    std::unordered_set<const Node*> quantized, of_input;
    std::unordered_set<const Node*> normalising;
    for (const UnfusedBatchNorm& norm : find_unfused_batch_norms(graph_))
      for (const Node* node : interior_of(norm)) normalising.insert(node);
    const auto carries_quantized = [&](const Output& input) {
      return is_quantizer(*input.node) || taker_of(input) || quantized.contains(input.node);
    };
    const auto carries_input = [&](const Output& input) { return !taker_of(input) && of_input.contains(input.node); };
    for (Node* node : graph_.topological_order()) {
      if (node->as<Placeholder>() || (keeps_range(*node) && carries_input(node->input(0)))) of_input.insert(node);
      const bool is_left = normalising.contains(node);
      if (!is_left && keeps_range(*node) && carries_quantized(node->input(0))) quantized.insert(node);
      if (!gets_range(*node)) continue;
      // A table, or a scale and shift, works on the integers of the data set.
      const bool reads_input = std::ranges::any_of(node->inputs(), carries_input);
      const bool reads_integers =
          std::ranges::any_of(node->inputs(), carries_quantized) || (is_function(*node) && reads_input);
      if (std::string why = why_float(*node); !why.empty()) {
        decisions_.left_float[node] = {std::move(why)};
      } else if (is_left || !reads_integers) {
        decisions_.left_float[node] = {reads_input ? "computed from an input without quantizer (`quantize_input`)"
                                                   : "none of its inputs is quantized"};
      } else {
        quantized.insert(node);
        requantize(*node);
      }
    }
    take_back_what_is_left_to_float();
  }

  /// The decisions, once all are made: a quantizer of one tensor may serve others.
  Decisions decisions() {
    for (LayerDecision& layer : decisions_.layers)
      for (TensorDecision& output : layer.outputs) {
        output.row = row_after(output.producer->output());
        if (output.producer == layer.match->post_activation_bypass) output.left_to = takes_over_sum(*output.producer);
      }
    decisions_.patterns = pattern_decisions();
    return std::move(decisions_);
  }

 private:
  /// What became of each of layer_bits.
  std::vector<PatternDecision> pattern_decisions() const {
    const std::span<const LayerBits> list = settings_.patterns().list();
    const std::span<const LayerDecision> layers = decisions_.layers;
    const std::span<const LayerSkip> skips = decisions_.search.skips;
    std::unordered_set<std::string_view> winners;
    std::vector<std::string_view> names;
    for (const LayerDecision& layer : layers) {
      winners.insert(layer.settings.pattern);
      names.push_back(layer.match->layer->name());
    }
    for (const LayerSkip& skip : skips) names.push_back(skip.layer->name());
    const std::vector<std::size_t> first_layers = settings_.patterns().first_layers(names);
    std::vector<PatternDecision> patterns;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t first = first_layers[i];
      patterns.push_back(
          {.pattern = list[i].pattern,
           .has_sums_bits = list[i].sums_bits.has_value(),
           .has_ema_decay = list[i].ema_decay.has_value(),
           .decides = winners.contains(list[i].pattern),
           .layer = first < layers.size() ? &layers[first] : nullptr,
           .skip = layers.size() <= first && first < names.size() ? &skips[first - layers.size()] : nullptr});
    }
    return patterns;
  }

  int channel_axes_of(const LayerMatch& match) const { return channel_axes_.at(weights_key(match)); }
  bool is_unread_batch_norm(const Node& node) const {
    return is_unfolded_batch_norm(node) && node.uses().empty() && !graph_.is_output(node.output());
  }

  /// The row of a quantizer that was there before.
  QuantizerRow& row_of(Node& quantizer) {
    QuantizerRow*& row = by_node_[&quantizer];
    if (!row)
      row = &decisions_.quantizers.emplace_back(QuantizerRow{.tensor = quantizer.input(0),
                                                             .name = quantizer.name(),
                                                             .attributes = *quantizer.as<FakeQuant>(),
                                                             .node = &quantizer});
    return *row;
  }

  /// The quantizer to insert that takes all uses of the tensor, or null.
  QuantizerRow* taker_of(Output tensor) const {
    const auto found = by_tensor_.find(key_of(tensor));
    return found != by_tensor_.end() && found->second->takes_all ? found->second : nullptr;
  }

  /// The quantizer that will read the tensor, directly or through ops of these types, or null.
  QuantizerRow* row_through(Output tensor, std::span<const std::string_view> types) {
    std::vector<Output> pending = {tensor};
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const Output at = pending[i];
      if (QuantizerRow* taker = taker_of(at)) return taker;
      const std::span<const Use> uses = at.node->uses(at.index);
      for (const Use& use : uses)
        if (use.input == 0 && is_quantizer(*use.node)) return &row_of(*use.node);
      if (const auto row = by_tensor_.find(key_of(at)); row != by_tensor_.end()) return row->second;
      for (const Use& use : uses)
        if (use.input == 0 && is_one_of(use.node->type(), types)) pending.push_back(use.node->output());
    }
    return nullptr;
  }
  QuantizerRow* row_after(Output tensor) { return row_through(tensor, kReshapeOrIdentity); }

  void quantize_weights(LayerDecision& layer) {
    layer.weights = {.producer = layer.match->weights.node, .asked = layer.settings.weights};
    layer.weights.asked.attributes.per_channel &= channel_axes_of(*layer.match) > 0;
    layer.weights.row = weights_row(layer);
    if (layer.weights.row && layer.settings.weights.attributes.per_channel &&
        !layer.weights.row->attributes.per_channel)
      layer.weights.why = concat("per tensor: ", why_per_tensor(layer));
  }

  /// The quantizer of the layer's weights; null where they stay float.
  QuantizerRow* weights_row(const LayerDecision& layer) {
    const LayerMatch& match = *layer.match;
    const Use use = {match.layer, match.weight_input};
    const Output taken = match.layer->input(match.weight_input), origin = source_through(taken, kIdentity);
    if (is_quantizer(*origin.node)) return &row_of(*origin.node);
    if (QuantizerRow* shared = row_through(origin, kIdentity)) {
      if (!shared->takes_all) shared->readers.push_back(use);
      return shared;
    }
    if (row_after(origin)) return nullptr;
    const FakeQuantAttributes& asked = layer.weights.asked.attributes;
    return &add({.tensor = taken,
                 .name = join_scope(scope_of(match.layer->name()), "weights_quant"),
                 .attributes = asked,
                 .initial = kAroundZero,
                 .channel_axes = asked.per_channel ? channel_axes_of(match) : 0,
                 .readers = {use}});
  }

  /// Why a layer that asks for a range for each channel takes its weights from a quantizer with one.
  std::string why_per_tensor(const LayerDecision& layer) const {
    if (weight_channel_axes(*layer.match) == 0) return "the last axis is not the output channel";
    if (channel_axes_of(*layer.match) == 0) return "shared with other channels";
    for (const LayerDecision& other : decisions_.layers)
      if (other.weights.row == layer.weights.row && !other.settings.weights.attributes.per_channel)
        return concat("shared with ", other.match->layer->name());
    return "quantized before";
  }

  void quantize_outputs(LayerDecision& layer) {
    const LayerMatch& match = *layer.match;
    const LayerSettings& settings = layer.settings;
    const std::string scope = scope_of(match.layer->name());
    const auto quantize = [&](Node& producer, const std::string& in, const char* name, InitialRange initial) {
      layer.outputs.push_back(quantize_activation(producer, join_scope(in, name), settings, initial));
    };
    if (match.bypass) quantize(*match.before_bypass(), scope, "conv_quant", kAroundZero);
    if (match.bypass && !match.activation)
      quantize(*match.last(), scope_of(scope), "add_quant", kAroundZero);
    else
      quantize(*match.last(), match.bypass ? scope_of(scope) : scope, "act_quant", kNotNegative);
    Node* add = match.post_activation_bypass;
    if (!add || unused_.contains(add)) return;
    if (takes_over_sum(*add))
      layer.outputs.push_back(asked_of(*add, settings));
    else
      quantize(*add, scope_of(add->name()), "post_activation_bypass_quant", kAroundZero);
  }

  /// Why an op that gets a range of its own has none, whatever it reads; empty otherwise.
  std::string why_float(const Node& node) const {
    if (unused_.contains(&node)) return "reaches no output";
    if (!needed_.contains(&node)) return "reaches neither an output nor a layer";
    if (decisions_.unwanted.contains(&node)) return "left without a quantizer, as asked (`float_pools`)";
    return is_unread_batch_norm(node) ? "nobody reads it" : "";
  }

  void requantize(Node& node) {
    if (const Node* next = next_that_takes_over(node))
      decisions_.left_float[&node] = {concat("left to ", next->name(), ", which follows"), next};
    else
      quantize_activation(node, concat(node.name(), "/activation_", node.type(), "_quant"),
                          decisions_.without_layer(node), kAroundZero);
  }

  /// What is left to a node outside the scope, say, stays float, too.
  void take_back_what_is_left_to_float() {
    std::vector<Node*> backwards = graph_.topological_order();
    std::ranges::reverse(backwards);
    const auto next_of = [&](const Node* node) -> const Node** {
      const auto left = decisions_.left_float.find(node);
      return left != decisions_.left_float.end() && left->second.next ? &left->second.next : nullptr;
    };
    for (const Node* node : backwards)
      if (const Node** next = next_of(node); next && !row_after((*next)->output()) && !next_of(*next)) *next = nullptr;
  }

  /// The only reader of the node, if that is a clamp or, behind a scale and shift, another one; null for none.
  const Node* next_that_takes_over(const Node& node) const {
    if (taker_of(node.output()) || node.uses().size() != 1 || graph_.is_output(node.output())) return nullptr;
    const Use& use = node.uses().front();
    const bool joins = scale_shift_input(node) && scale_shift_input(*use.node) == use.input;
    return is_clamp(*use.node) || (joins && !is_unread_batch_norm(*use.node)) ? use.node : nullptr;
  }

  /// The reader of a post-activation Add that is quantized instead; null for none.
  const Node* takes_over_sum(const Node& add) const {
    if (taker_of(add.output())) return nullptr;
    const auto clamp = std::ranges::find_if(add.uses(), [](const Use& use) { return is_clamp(*use.node); });
    return clamp != add.uses().end() ? clamp->node : next_that_takes_over(add);
  }

  TensorDecision asked_of(const Node& producer, const LayerSettings& settings) const {
    const bool is_wide = settings.widens_sums && decisions_.sums.keep(producer);
    return {.producer = &producer, .asked = is_wide ? settings.sums : settings.output, .is_wide = is_wide};
  }

  /// Does nothing out of scope or where a quantizer is already.
  TensorDecision quantize_activation(Node& producer, const std::string& name, const LayerSettings& settings,
                                     InitialRange initial) {
    TensorDecision decision = asked_of(producer, settings);
    // A BatchNorm that is folded into its layer belongs to the layer's scope, wherever its name is.
    if (!folding_of(producer) && !decisions_.search.scope.has(producer)) {
      decision.why = "outside the scope";
      return decision;
    }
    const QuantizerRow* row = row_after(producer.output());
    if (!row) row = &add_activation_quantizer(producer.output(), name, decision.asked, initial);
    if (decision.is_wide && row->attributes.bits > settings.output.attributes.bits)
      narrow_for_layers(*row, settings.output, initial);
    return decision;
  }

  /// Gives the layers that read a residual sum a quantizer of fewer bits.
  void narrow_for_layers(const QuantizerRow& sum, const QuantizerSettings& asked, InitialRange initial) {
    if (!narrowed_.insert(&sum).second) return;
    const std::string name = join_scope(scope_of(sum.name), "edge_quant");
    std::vector<Output> pending = {sum.node ? sum.node->output() : sum.tensor};
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const Output wide = pending[i];
      if (i > 0 && taker_of(wide)) continue;
      QuantizerRow* narrow = nullptr;
      std::vector<Use> of_layers;
      for (const Use& use : wide.node->uses(wide.index)) {
        if (is_quantizer(*use.node))
          narrow = &row_of(*use.node);
        else if (decisions_.sums.ends_in_layers(use))
          of_layers.push_back(use);
        else if (keeps_range(*use.node))
          pending.push_back(use.node->output());
      }
      if (of_layers.empty()) continue;
      if (!narrow)
        add_activation_quantizer(wide, name, asked, initial, std::move(of_layers));
      else
        narrow->readers.insert(narrow->readers.end(), of_layers.begin(), of_layers.end());
    }
  }

  /// For the given uses; for all consumers where there are none. The output of a clamp starts with start_of() its
  /// bounds, whatever `initial` is; one of a known range has that.
  QuantizerRow& add_activation_quantizer(Output tensor, const std::string& name, const QuantizerSettings& asked,
                                         InitialRange initial, std::vector<Use> readers = {}) {
    const Node& origin = *source_through(tensor, OpRole::kQuantizer | OpRole::kKeepsRange).node;
    FakeQuantAttributes attributes = asked.attributes;
    if (is_clamp(origin)) initial = start_of(clamp_bounds(origin.op()));
    if (const std::optional<OutputRange> known = output_range(origin.type())) {
      attributes.range = RangeKind::kFixed;
      initial = {.min = known->low, .max = known->last(static_cast<int>(attributes.bits))};
    }
    const bool takes_all = readers.empty();
    return add({.tensor = tensor,
                .name = name,
                .attributes = attributes,
                .initial = initial,
                .takes_all = takes_all,
                .readers = std::move(readers)});
  }

  QuantizerRow& add(QuantizerRow row) {
    row.attributes.is_training = decisions_.is_training;
    if (!decisions_.is_training) row.attributes.delay = 0;
    QuantizerRow& added = decisions_.quantizers.emplace_back(std::move(row));
    by_tensor_.try_emplace(key_of(added.tensor), &added);
    return added;
  }

  const Graph& graph_;
  const LayerSettingsIndex settings_;
  const std::map<TensorKey, int> channel_axes_;
  const std::unordered_set<const Node*> unused_;
  const std::unordered_set<const Node*> needed_;
  Decisions decisions_;
  /// The rows of quantizers to insert, by their tensor, and of quantizers from before.
  std::map<TensorKey, QuantizerRow*> by_tensor_;
  std::unordered_map<const Node*, QuantizerRow*> by_node_;
  /// Sums whose readers narrow_for_layers() has seen.
  std::unordered_set<const QuantizerRow*> narrowed_;
};

/// A batch norm has a factor for each channel, which takes a scale for each.
void require_channel_scales(const Decisions& decisions) {
  for (const LayerDecision& layer : decisions.layers)
    if (const Node* bias = layer.match->bias;
        bias && is_folded_late(*bias) && !layer.settings.weights.attributes.per_channel)
      fail(describe(*layer.match->layer), " has one range for all channels (bits_config), but ", describe(*bias),
           ", which is folded late, needs one for each");
}

std::string missed_scope(const Decisions& decisions) {
  const Scope& scope = decisions.search.scope;
  const auto is_in_scope = [&](const LayerSkip& skip) { return scope.has(*skip.layer); };
  if (scope.name.empty() || !decisions.layers.empty() || std::ranges::any_of(decisions.search.skips, is_in_scope))
    return "";
  return concat("no layer is in scope ", quote(scope.name));
}

}  // namespace

std::vector<Node*> TensorDecision::for_layers() const {
  return quantizer() ? quantizers_for_layers(*quantizer()) : std::vector<Node*>();
}

Decisions decide(const Graph& graph, LayerSearch search, const RewriteOptions& options, bool is_training) {
  Decider decider(graph, std::move(search), options, is_training);
  decider.note_unwanted(options.quantize_input, options.float_pools);
  if (options.quantize_input) decider.quantize_inputs();
  decider.quantize_layers();
  decider.requantize_between_layers();
  Decisions decisions = decider.decisions();
  if (decisions.bn_fold == BnFold::kLate) require_channel_scales(decisions);
  decisions.missed_scope = missed_scope(decisions);
  return decisions;
}

Node* quantizer_after(Output tensor) {
  for (const Use& use : uses_through(tensor, kReshapeOrIdentity))
    if (use.input == 0 && is_quantizer(*use.node)) return use.node;
  return nullptr;
}

}  // namespace miniqat::quantize
