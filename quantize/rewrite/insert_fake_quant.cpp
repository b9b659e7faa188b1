#include "quantize/rewrite/insert_fake_quant.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "layers/matmul.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/spelled_out_batch_norm.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/layer_options.h"
#include "quantize/rewrite/residual_sums.h"

namespace miniqat::quantize {
namespace {

constexpr std::array<std::string_view, 2> kReshapeOrIdentity = {"Reshape", "Identity"};
/// Where ranges start, as in tf.contrib.quantize: the output of a whole layer is taken for that of a Relu6.
constexpr InitialRange kNotNegative = {.min = 0, .max = 6};
constexpr InitialRange kAroundZero = {.min = -6, .max = 6};

bool is_clamped_by_a_reader(const Node& node) {
  return std::ranges::any_of(node.uses(), [](const Use& use) { return is_clamp(*use.node); });
}

Node* quantizer_through(Output tensor, std::span<const std::string_view> types) {
  for (const Use& use : uses_through(tensor, types))
    if (use.input == 0 && is_quantizer(*use.node)) return use.node;
  return nullptr;
}

std::pair<const Node*, int> weights_key(const LayerMatch& match) {
  const Output origin = source_through(match.weights, kIdentity);
  return {origin.node, origin.index};
}

class Inserter {
 public:
  Inserter(Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options, bool is_training)
      : graph_(graph),
        options_(options),
        layer_options_(graph, matches, options),
        channel_axes_(matches),
        sums_(graph),
        is_training_(is_training) {}

  void quantize_inputs();
  void quantize_layer(const LayerMatch& match);
  void requantize_between_layers();

  std::vector<std::string> inserted;

 private:
  void quantize_weights(const LayerMatch& match, const std::string& scope, const RewriteOptions& options);
  /// Does nothing out of scope or where a quantizer is already.
  void quantize_activation(Node& producer, const std::string& name, const RewriteOptions& options,
                           InitialRange initial = kAroundZero);
  /// Gives the layers that read a residual sum a quantizer of fewer bits.
  void narrow_for_layers(Output sum, const RewriteOptions& options, InitialRange initial);
  /// For the given uses; for all consumers where there are none. The output of a Relu or Relu6 starts with
  /// kNotNegative, whatever `initial` is; one of a known range has that.
  Output add_activation_quantizer(Output tensor, const std::string& name, const RewriteOptions& options,
                                  InitialRange initial = kAroundZero, std::span<const Use> uses = {});
  Output add(const std::string& name, Output tensor, FakeQuantAttributes attributes, InitialRange initial,
             int channel_axes);
  std::string free_name(const std::string& name);

  Graph& graph_;
  const RewriteOptions& options_;
  const LayerOptions layer_options_;
  const WeightChannelAxes channel_axes_;
  const ResidualSums sums_;
  const bool is_training_;
  /// For names that are numbered: no smaller number is free.
  std::unordered_map<std::string, int> next_number_;
};

void Inserter::quantize_inputs() {
  std::vector<Output> pending;
  for (const Node* layer : graph_.topological_order())
    if (is_layer(*layer) && in_scope(layer->name(), options_.scope))
      pending.insert(pending.end(), layer->inputs().begin(), layer->inputs().end());
  std::unordered_set<const Node*> seen;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Output tensor = pending[i];
    if (!seen.insert(tensor.node).second) continue;
    if (tensor.node->type() == "Placeholder" && !quantizer_after(tensor))
      add_activation_quantizer(tensor, tensor.node->name() + "/input_quant", options_);
    else if (keeps_range(*tensor.node))
      pending.push_back(tensor.node->input(0));
    else if (is_requantized(*tensor.node))
      pending.insert(pending.end(), tensor.node->inputs().begin(), tensor.node->inputs().end());
  }
}

void Inserter::quantize_layer(const LayerMatch& match) {
  const std::string scope = scope_of(match.layer->name());
  const RewriteOptions options = layer_options_.of(match).options;
  quantize_weights(match, scope, options);
  if (match.bypass) {
    quantize_activation(*match.before_bypass(), join_scope(scope, "conv_quant"), options);
    const std::string outer = scope_of(scope);
    if (match.activation)
      quantize_activation(*match.last(), join_scope(outer, "act_quant"), options, kNotNegative);
    else
      quantize_activation(*match.last(), join_scope(outer, "add_quant"), options);
  } else {
    quantize_activation(*match.last(), join_scope(scope, "act_quant"), options, kNotNegative);
  }
  if (Node* add = match.post_activation_bypass)
    if (!is_clamped_by_a_reader(*add))
      quantize_activation(*add, join_scope(scope_of(add->name()), "post_activation_bypass_quant"), options);
}

void Inserter::quantize_weights(const LayerMatch& match, const std::string& scope, const RewriteOptions& options) {
  const Output origin = source_through(match.layer->input(match.weight_input), kIdentity);
  if (is_quantizer(*origin.node)) return;

  const Use use = {match.layer, match.weight_input};
  const Output taken = match.layer->input(match.weight_input);
  if (Node* shared = quantizer_through(origin, kIdentity)) {
    graph_.reroute(taken, shared->output(), std::span(&use, 1));
    return;
  }
  if (quantizer_after(origin)) return;
  const FakeQuantAttributes attributes = {.bits = options.weight_bits,
                                          .narrow_range = !options.full_range_weights,
                                          .symmetric = options.has_symmetric_weights(),
                                          .power_of_two = options.scales == ScaleChoice::kPowerOfTwo,
                                          .range = options.weight_range(),
                                          .ema_decay = options.ema_decay,
                                          .delay = is_training_ ? options.quant_delay : 0,
                                          .is_training = is_training_};
  const Output quantized = add(join_scope(scope, "weights_quant"), taken, attributes, kAroundZero,
                               options.per_channel ? channel_axes_.of(match) : 0);
  graph_.reroute(taken, quantized, std::span(&use, 1));
}

void Inserter::requantize_between_layers() {
  std::unordered_set<const Node*> quantized;
  std::unordered_set<const Node*> normalising;
  for (const UnfusedBatchNorm& norm : find_unfused_batch_norms(graph_))
    for (const Node* node : interior_of(norm)) normalising.insert(node);
  for (Node* node : graph_.topological_order()) {
    if (normalising.contains(node)) continue;
    const auto carries_quantized = [&](const Output& input) {
      return is_quantizer(*input.node) || quantized.contains(input.node);
    };
    if (keeps_range(*node) && carries_quantized(node->input(0))) quantized.insert(node);
    if (!is_requantized(*node) || !std::ranges::any_of(node->inputs(), carries_quantized)) continue;
    if (options_.float_pools && is_pool(*node)) continue;
    quantized.insert(node);
    const bool only_a_clamp_follows = node->uses().size() == 1 && is_clamp(*node->uses().front().node) &&
                                      !std::ranges::count(graph_.outputs(), node->output());
    if (!only_a_clamp_follows)
      quantize_activation(*node, concat(node->name(), "/activation_", node->type(), "_quant"), options_);
  }
}

void Inserter::quantize_activation(Node& producer, const std::string& name, const RewriteOptions& options,
                                   InitialRange initial) {
  // A BatchNorm is folded into its layer and belongs to the layer's scope, wherever its name is.
  const bool inside = producer.type() == "BatchNorm" || in_scope(producer.name(), options_.scope);
  if (!inside) return;
  const bool is_wide = options.widens_sums() && sums_.keep(producer);
  const Node* quantizer = quantizer_after(producer.output());
  if (!quantizer)
    quantizer = add_activation_quantizer(producer.output(), name, is_wide ? options.for_sums() : options, initial).node;
  if (is_wide && quantizer->as<FakeQuant>()->bits > options.activation_bits)
    narrow_for_layers(quantizer->output(), options, initial);
}

void Inserter::narrow_for_layers(Output sum, const RewriteOptions& options, InitialRange initial) {
  const std::string name = join_scope(scope_of(sum.node->name()), "edge_quant");
  std::vector<Output> pending = {sum};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Output wide = pending[i];
    Output narrow = {};
    std::vector<Use> of_layers;
    for (const Use& use : wide.node->uses(wide.index)) {
      if (is_quantizer(*use.node))
        narrow = use.node->output();
      else if (sums_.ends_in_layers(use))
        of_layers.push_back(use);
      else if (keeps_range(*use.node))
        pending.push_back(use.node->output());
    }
    if (of_layers.empty()) continue;
    if (!narrow.node)
      narrow = add_activation_quantizer(wide, name, options, initial, of_layers);
    else
      graph_.reroute(wide, narrow, of_layers);
  }
}

Output Inserter::add_activation_quantizer(Output tensor, const std::string& name, const RewriteOptions& options,
                                          InitialRange initial, std::span<const Use> uses) {
  const Node& origin = *source_through(tensor, OpRole::kQuantizer | OpRole::kKeepsRange).node;
  const std::optional<OutputRange> known = output_range(origin.type());
  const FakeQuantAttributes attributes = {.bits = options.activation_bits,
                                          .symmetric = options.symmetric,
                                          .power_of_two = options.scales == ScaleChoice::kPowerOfTwo,
                                          .range = known ? RangeKind::kFixed : options.activation_range(),
                                          .ema_decay = options.ema_decay,
                                          .delay = is_training_ ? options.quant_delay : 0,
                                          .is_training = is_training_};
  if (is_clamp(origin)) initial = kNotNegative;
  if (known) initial = {.min = known->low, .max = known->last(options.activation_bits)};
  const Output quantized = add(name, tensor, attributes, initial, 0);
  uses.empty() ? graph_.reroute(tensor, quantized) : graph_.reroute(tensor, quantized, uses);
  return quantized;
}

Output Inserter::add(const std::string& name, Output tensor, FakeQuantAttributes attributes, InitialRange initial,
                     int channel_axes) {
  const std::string free = free_name(name);
  inserted.push_back(free);
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

}  // namespace

std::vector<std::string> insert_fake_quants(Graph& graph, const std::vector<LayerMatch>& matches,
                                            const RewriteOptions& options, bool is_training) {
  Inserter inserter(graph, matches, options, is_training);
  if (options.quantize_input) inserter.quantize_inputs();
  for (const LayerMatch& match : matches) inserter.quantize_layer(match);
  inserter.requantize_between_layers();
  return inserter.inserted;
}

int weight_channel_axes(const LayerMatch& match) {
  if (match.layer->type() == "DepthwiseConv2d") return 2;
  if (match.layer->type() == "Conv2D") return 1;
  const auto* matmul = match.layer->as<layers::MatMul>();
  return match.weight_input == 1 && matmul && !matmul->transpose_b ? 1 : 0;
}

WeightChannelAxes::WeightChannelAxes(std::span<const LayerMatch> matches) {
  for (const LayerMatch& match : matches) {
    const int axes = weight_channel_axes(match);
    const auto [known, fresh] = axes_.try_emplace(weights_key(match), axes);
    if (!fresh && known->second != axes) known->second = 0;
  }
}

int WeightChannelAxes::of(const LayerMatch& match) const { return axes_.at(weights_key(match)); }

Node* quantizer_after(Output tensor) { return quantizer_through(tensor, kReshapeOrIdentity); }

Output before_quantizers(Output tensor) { return source_through(tensor, OpRole::kQuantizer); }

}  // namespace miniqat::quantize
