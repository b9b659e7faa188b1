#include "quantize/rewrite/insert_fake_quant.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "layers/conv2d.h"
#include "layers/depthwise_conv2d.h"
#include "layers/identity.h"
#include "layers/matmul.h"
#include "layers/reshape.h"
#include "quantize/fake_quant.h"
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

/// Among integers a table or a line.
bool is_function(const Node& node) { return has_role(node, OpRole::kTable) || line_input(node); }

Node* quantizer_through(Output tensor, std::span<const std::string_view> types) {
  for (const Use& use : uses_through(tensor, types))
    if (use.input == 0 && is_quantizer(*use.node)) return use.node;
  return nullptr;
}

/// The number of the last axes of the layer's weights that are its output channel; 0 if it is another axis.
int weight_channel_axes(const LayerMatch& match) {
  if (match.layer->as<layers::DepthwiseConv2d>()) return 2;
  if (match.layer->as<layers::Conv2d>()) return 1;
  const auto* matmul = match.layer->as<layers::MatMul>();
  return match.weight_input == 1 && matmul && !matmul->transpose_b ? 1 : 0;
}

/// The same for layers that may share their weights: 0 where these differ.
class WeightChannelAxes {
 public:
  explicit WeightChannelAxes(std::span<const LayerMatch> matches) {
    for (const LayerMatch& match : matches) {
      const int axes = weight_channel_axes(match);
      const auto [known, fresh] = axes_.try_emplace(weights_key(match), axes);
      if (!fresh && known->second != axes) known->second = 0;
    }
  }

  int of(const LayerMatch& match) const { return axes_.at(weights_key(match)); }

 private:
  static std::pair<const Node*, int> weights_key(const LayerMatch& match) {
    const Output origin = source_through(match.weights, kIdentity);
    return {origin.node, origin.index};
  }

  std::map<std::pair<const Node*, int>, int> axes_;
};

class Inserter {
 public:
  Inserter(Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options, bool is_training)
      : graph_(graph),
        options_(options),
        settings_(graph, matches, options),
        channel_axes_(matches),
        unused_(unused_nodes(graph)),
        is_training_(is_training),
        verdicts_{.others = LayerSettings(options),
                  .before_layers = settings_before_layers(options),
                  .behind_layers = nodes_behind_layers(graph.topological_order()),
                  .sums = ResidualSums(graph)} {}

  void quantize_inputs();
  void quantize_layer(const LayerMatch& match);
  void requantize_between_layers();
  /// The decisions, once all is inserted: a quantizer of one tensor may serve others.
  Verdicts verdicts();

 private:
  bool is_fetched(Output tensor) const { return std::ranges::count(graph_.outputs(), tensor) > 0; }
  bool is_unread_batch_norm(const Node& node) const {
    return is_unfolded_batch_norm(node) && node.uses().empty() && !is_fetched(node.output());
  }
  const Node* next_that_takes_over(const Node& node) const;
  /// Of a post-activation Add: a reader that is quantized instead; null for none.
  const Node* takes_over_sum(const Node& add) const;
  TensorVerdict asked_of(const Node& producer, const LayerSettings& settings) const;
  void quantize_weights(LayerVerdict& verdict, const std::string& scope);
  /// The quantizer of the layer's weights, which it may have to insert; null where they stay float.
  Node* weights_quantizer(const LayerVerdict& verdict, const std::string& scope);
  /// Why a layer that asks for a range for each channel takes its weights from a quantizer with one.
  std::string why_per_tensor(const LayerVerdict& verdict) const;
  /// Does nothing out of scope or where a quantizer is already.
  TensorVerdict quantize_activation(Node& producer, const std::string& name, const LayerSettings& settings,
                                    InitialRange initial = kAroundZero);
  /// Gives the layers that read a residual sum a quantizer of fewer bits.
  void narrow_for_layers(Output sum, const QuantizerSettings& asked, InitialRange initial);
  /// For the given uses; for all consumers where there are none. The output of a clamp starts with start_of() its
  /// bounds, whatever `initial` is; one of a known range has that.
  Output add_activation_quantizer(Output tensor, const std::string& name, const QuantizerSettings& asked,
                                  InitialRange initial = kAroundZero, std::span<const Use> uses = {});
  Output add(const std::string& name, Output tensor, FakeQuantAttributes attributes, InitialRange initial,
             int channel_axes);
  std::string free_name(const std::string& name);
  static void find_quantizers(TensorVerdict& verdict);

  Graph& graph_;
  const RewriteOptions& options_;
  const LayerSettingsIndex settings_;
  const WeightChannelAxes channel_axes_;
  const std::unordered_set<const Node*> unused_;
  const bool is_training_;
  Verdicts verdicts_;
  /// For names that are numbered: no smaller number is free.
  std::unordered_map<std::string, int> next_number_;
};

void Inserter::quantize_inputs() {
  std::vector<Output> pending;
  for (const Node* layer : graph_.topological_order())
    if (is_layer(*layer) && in_scope(layer->name(), options_.scope) && !unused_.contains(layer))
      pending.insert(pending.end(), layer->inputs().begin(), layer->inputs().end());
  std::unordered_set<const Node*> seen;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Output tensor = pending[i];
    if (!seen.insert(tensor.node).second) continue;
    if (tensor.node->as<Placeholder>() && !quantizer_after(tensor))
      add_activation_quantizer(tensor, tensor.node->name() + "/input_quant", verdicts_.others.output);
    else if (keeps_range(*tensor.node))
      pending.push_back(tensor.node->input(0));
    else if (gets_range(*tensor.node))
      pending.insert(pending.end(), tensor.node->inputs().begin(), tensor.node->inputs().end());
  }
}

void Inserter::quantize_layer(const LayerMatch& match) {
  LayerVerdict& verdict = verdicts_.layers.emplace_back(LayerVerdict{.match = &match, .settings = settings_.of(match)});
  const LayerSettings& settings = verdict.settings;
  const std::string scope = scope_of(match.layer->name());
  verdict.weights = {.producer = match.weights.node, .asked = settings.weights};
  verdict.weights.asked.attributes.per_channel &= channel_axes_.of(match) > 0;
  quantize_weights(verdict, scope);
  if (match.bypass) {
    verdict.before_bypass = quantize_activation(*match.before_bypass(), join_scope(scope, "conv_quant"), settings);
    const std::string outer = scope_of(scope);
    verdict.output = match.activation
                         ? quantize_activation(*match.last(), join_scope(outer, "act_quant"), settings, kNotNegative)
                         : quantize_activation(*match.last(), join_scope(outer, "add_quant"), settings);
  } else {
    verdict.output = quantize_activation(*match.last(), join_scope(scope, "act_quant"), settings, kNotNegative);
  }
  if (Node* add = match.post_activation_bypass; add && !unused_.contains(add)) {
    const std::string name = join_scope(scope_of(add->name()), "post_activation_bypass_quant");
    verdict.after_bypass = takes_over_sum(*add) ? asked_of(*add, settings) : quantize_activation(*add, name, settings);
  }
}

void Inserter::quantize_weights(LayerVerdict& verdict, const std::string& scope) {
  Node* quantizer = verdict.weights.quantizer = weights_quantizer(verdict, scope);
  if (quantizer && verdict.settings.weights.attributes.per_channel && !quantizer->as<FakeQuant>()->per_channel)
    verdict.weights.why = concat("per tensor: ", why_per_tensor(verdict));
}

std::string Inserter::why_per_tensor(const LayerVerdict& verdict) const {
  if (weight_channel_axes(*verdict.match) == 0) return "the last axis is not the output channel";
  if (channel_axes_.of(*verdict.match) == 0) return "shared with other channels";
  for (const LayerVerdict& other : verdicts_.layers)
    if (other.weights.quantizer == verdict.weights.quantizer && !other.settings.weights.attributes.per_channel)
      return concat("shared with ", other.match->layer->name());
  return "quantized before";
}

Node* Inserter::weights_quantizer(const LayerVerdict& verdict, const std::string& scope) {
  const LayerMatch& match = *verdict.match;
  const Output origin = source_through(match.layer->input(match.weight_input), kIdentity);
  if (is_quantizer(*origin.node)) return origin.node;

  const Use use = {match.layer, match.weight_input};
  const Output taken = match.layer->input(match.weight_input);
  if (Node* shared = quantizer_through(origin, kIdentity)) {
    graph_.reroute(taken, shared->output(), std::span(&use, 1));
    return shared;
  }
  if (quantizer_after(origin)) return nullptr;
  const FakeQuantAttributes& attributes = verdict.weights.asked.attributes;
  const Output quantized = add(join_scope(scope, "weights_quant"), taken, attributes, kAroundZero,
                               attributes.per_channel ? channel_axes_.of(match) : 0);
  graph_.reroute(taken, quantized, std::span(&use, 1));
  return quantized.node;
}

void Inserter::requantize_between_layers() {
  // Those whose output has a quantizer's range, and those whose output has the input's.
  std::unordered_set<const Node*> quantized, of_input;
  std::unordered_set<const Node*> normalising;
  for (const UnfusedBatchNorm& norm : find_unfused_batch_norms(graph_))
    for (const Node* node : interior_of(norm)) normalising.insert(node);
  for (Node* node : graph_.topological_order()) {
    const auto carries_quantized = [&](const Output& input) {
      return is_quantizer(*input.node) || quantized.contains(input.node);
    };
    const auto carries_input = [&](const Output& input) { return of_input.contains(input.node); };
    if (node->as<Placeholder>() || (keeps_range(*node) && carries_input(node->input(0)))) of_input.insert(node);
    const bool is_left = normalising.contains(node);
    if (!is_left && keeps_range(*node) && carries_quantized(node->input(0))) quantized.insert(node);
    if (!gets_range(*node)) continue;
    if (unused_.contains(node)) {
      verdicts_.left_float[node] = "reaches no output";
      continue;
    }
    if (options_.float_pools && is_pool(*node)) {
      verdicts_.left_float[node] = "left without a quantizer, as asked (`float_pools`)";
      ++verdicts_.float_pools;
      continue;
    }
    if (is_unread_batch_norm(*node)) {
      verdicts_.left_float[node] = "nobody reads it";
      continue;
    }
    // A table, or a line, works on the integers of the data set.
    const bool reads_integers = std::ranges::any_of(node->inputs(), carries_quantized) ||
                                (is_function(*node) && std::ranges::any_of(node->inputs(), carries_input));
    if (is_left || !reads_integers) {
      verdicts_.left_float[node] = std::ranges::any_of(node->inputs(), carries_input)
                                       ? "computed from an input without quantizer (`quantize_input`)"
                                       : "none of its inputs is quantized";
      continue;
    }
    quantized.insert(node);
    if (const Node* next = next_that_takes_over(*node)) {
      verdicts_.left_to_next[node] = next;
      verdicts_.left_float[node] = concat("left to ", next->name(), ", which follows");
    } else {
      quantize_activation(*node, concat(node->name(), "/activation_", node->type(), "_quant"),
                          verdicts_.without_layer(*node));
    }
  }
  // What is left to a node outside the scope, say, stays float, too.
  std::vector<Node*> backwards = graph_.topological_order();
  std::ranges::reverse(backwards);
  for (const Node* node : backwards) {
    const auto left = verdicts_.left_to_next.find(node);
    if (left != verdicts_.left_to_next.end() && !quantizer_after(left->second->output()) &&
        !verdicts_.left_to_next.contains(left->second))
      verdicts_.left_to_next.erase(left);
  }
}

/// The only reader of the node, if that is a clamp or, behind a line, another line; null for none.
const Node* Inserter::next_that_takes_over(const Node& node) const {
  if (node.uses().size() != 1 || is_fetched(node.output())) return nullptr;
  const Use& use = node.uses().front();
  const bool joins_line = line_input(node) && line_input(*use.node) == use.input;
  return is_clamp(*use.node) || (joins_line && !is_unread_batch_norm(*use.node)) ? use.node : nullptr;
}

const Node* Inserter::takes_over_sum(const Node& add) const {
  const auto clamp = std::ranges::find_if(add.uses(), [](const Use& use) { return is_clamp(*use.node); });
  return clamp != add.uses().end() ? clamp->node : next_that_takes_over(add);
}

TensorVerdict Inserter::asked_of(const Node& producer, const LayerSettings& settings) const {
  const bool is_wide = settings.widens_sums && verdicts_.sums.keep(producer);
  return {.producer = &producer, .asked = is_wide ? settings.sums : settings.output, .is_wide = is_wide};
}

TensorVerdict Inserter::quantize_activation(Node& producer, const std::string& name, const LayerSettings& settings,
                                            InitialRange initial) {
  TensorVerdict verdict = asked_of(producer, settings);
  // A BatchNorm that is folded into its layer belongs to the layer's scope, wherever its name is.
  if (!folding_of(producer) && !in_scope(producer.name(), options_.scope)) {
    verdict.why = "outside the scope";
    return verdict;
  }
  const Node* quantizer = quantizer_after(producer.output());
  if (!quantizer) quantizer = add_activation_quantizer(producer.output(), name, verdict.asked, initial).node;
  if (verdict.is_wide && quantizer->as<FakeQuant>()->bits > settings.output.attributes.bits)
    narrow_for_layers(quantizer->output(), settings.output, initial);
  return verdict;
}

void Inserter::narrow_for_layers(Output sum, const QuantizerSettings& asked, InitialRange initial) {
  const std::string name = join_scope(scope_of(sum.node->name()), "edge_quant");
  std::vector<Output> pending = {sum};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Output wide = pending[i];
    Output narrow = {};
    std::vector<Use> of_layers;
    for (const Use& use : wide.node->uses(wide.index)) {
      if (is_quantizer(*use.node))
        narrow = use.node->output();
      else if (verdicts_.sums.ends_in_layers(use))
        of_layers.push_back(use);
      else if (keeps_range(*use.node))
        pending.push_back(use.node->output());
    }
    if (of_layers.empty()) continue;
    if (!narrow.node)
      narrow = add_activation_quantizer(wide, name, asked, initial, of_layers);
    else
      graph_.reroute(wide, narrow, of_layers);
  }
}

Output Inserter::add_activation_quantizer(Output tensor, const std::string& name, const QuantizerSettings& asked,
                                          InitialRange initial, std::span<const Use> uses) {
  const Node& origin = *source_through(tensor, OpRole::kQuantizer | OpRole::kKeepsRange).node;
  FakeQuantAttributes attributes = asked.attributes;
  if (is_clamp(origin)) initial = start_of(clamp_bounds(origin.op()));
  if (const std::optional<OutputRange> known = output_range(origin.type())) {
    attributes.range = RangeKind::kFixed;
    initial = {.min = known->low, .max = known->last(static_cast<int>(attributes.bits))};
  }
  const Output quantized = add(name, tensor, attributes, initial, 0);
  uses.empty() ? graph_.reroute(tensor, quantized) : graph_.reroute(tensor, quantized, uses);
  return quantized;
}

Output Inserter::add(const std::string& name, Output tensor, FakeQuantAttributes attributes, InitialRange initial,
                     int channel_axes) {
  attributes.delay = is_training_ ? options_.quant_delay : 0;
  attributes.is_training = is_training_;
  const std::string free = free_name(name);
  verdicts_.inserted.push_back(free);
  return fake_quant(graph_, free, tensor, attributes, initial, channel_axes);
}

std::string Inserter::free_name(const std::string& name) {
  const auto taken = [&](const std::string& candidate) {
    return graph_.find(candidate) || graph_.find(candidate + "/min") || graph_.find(candidate + "/max");
  };
  if (!taken(name)) return name;
  int& number = next_number_.try_emplace(name, 1).first->second;
  for (std::string candidate;; ++number)
    if (candidate = concat(name, "_", number); !taken(candidate)) return candidate;
}

Verdicts Inserter::verdicts() {
  for (LayerVerdict& layer : verdicts_.layers) {
    find_quantizers(layer.output);
    if (layer.before_bypass) find_quantizers(*layer.before_bypass);
    if (!layer.after_bypass) continue;
    find_quantizers(*layer.after_bypass);
    layer.after_bypass->left_to = takes_over_sum(*layer.after_bypass->producer);
  }
  return std::move(verdicts_);
}

void Inserter::find_quantizers(TensorVerdict& verdict) {
  verdict.quantizer = quantizer_after(verdict.producer->output());
  if (verdict.quantizer) verdict.for_layers = quantizers_for_layers(*verdict.quantizer);
}

}  // namespace

Verdicts insert_fake_quants(Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options,
                            bool is_training) {
  Inserter inserter(graph, matches, options, is_training);
  if (options.quantize_input) inserter.quantize_inputs();
  for (const LayerMatch& match : matches) inserter.quantize_layer(match);
  inserter.requantize_between_layers();
  return inserter.verdicts();
}

Node* quantizer_after(Output tensor) { return quantizer_through(tensor, kReshapeOrIdentity); }

Output before_quantizers(Output tensor) { return source_through(tensor, OpRole::kQuantizer); }

}  // namespace miniqat::quantize
