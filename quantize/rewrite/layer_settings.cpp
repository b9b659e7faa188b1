#include "quantize/rewrite/layer_settings.h"

#include <algorithm>

#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// The setting that layer_bits come from.
constexpr const char* kOfLayer = "bits_config";

/// Nodes that some layer reads, directly or through others.
std::unordered_set<const Node*> nodes_before_layers(const std::vector<Node*>& order) {
  std::unordered_set<const Node*> found;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (!is_layer(**node) && !found.contains(*node)) continue;
    for (const Output& input : (*node)->inputs()) found.insert(input.node);
  }
  return found;
}

}  // namespace

LayerSettings::LayerSettings(const RewriteOptions& options, const LayerBits* own, LayerPlace place) : bits(own) {
  static const LayerBits kNone;
  const LayerBits& layer = own ? *own : kNone;
  ask_of_weights(options, layer, place);
  ask_of_output(options, layer, place);
}

void LayerSettings::ask_of_weights(const RewriteOptions& options, const LayerBits& layer, LayerPlace place) {
  std::int64_t width = options.weight_bits;
  weights.of_bits = "weight_bits";
  if (options.ends_bits && (place.is_first || place.is_last)) {
    width = *options.ends_bits;
    weights.of_bits = "ends_bits";
  } else if (layer.weight_bits) {
    width = *layer.weight_bits;
    weights.of_bits = kOfLayer;
  }
  const RangeKind range = weight_range(layer.ranges.value_or(options.ranges), width);
  const bool learned = traits_of(range).learned;
  const bool all_symmetric = layer.symmetric.value_or(options.symmetric);
  const bool symmetric = layer.symmetric_weights.value_or(options.symmetric_weights);
  const bool asymmetric = !layer.symmetric_weights.value_or(!options.asymmetric_weights);
  weights.attributes = {.bits = width,
                        .narrow_range = !options.full_range_weights,
                        .symmetric = all_symmetric || symmetric || (learned && !asymmetric),
                        .power_of_two = options.scales == ScaleChoice::kPowerOfTwo,
                        .per_channel = layer.per_channel.value_or(options.per_channel),
                        .range = range,
                        .ema_decay = layer.ema_decay.value_or(options.ema_decay),
                        .delay = options.quant_delay};
  weights.of_symmetry = layer.symmetric || layer.symmetric_weights || layer.ranges ? kOfLayer
                        : all_symmetric                                            ? "symmetric"
                        : learned && !symmetric                                    ? "asymmetric_weights"
                                                                                   : "symmetric_weights";
  weights.of_range = layer.ranges ? kOfLayer : "ranges";
  weights.of_channels = layer.per_channel ? kOfLayer : "per_channel";
}

void LayerSettings::ask_of_output(const RewriteOptions& options, const LayerBits& layer, LayerPlace place) {
  std::int64_t width = options.activation_bits;
  output.of_bits = "activation_bits";
  const bool has_flag = place.is_last && (options.logits_bits || options.ends_bits);
  if (layer.activation_bits && !has_flag) {
    width = *layer.activation_bits;
    output.of_bits = kOfLayer;
  } else if (const std::optional<int> logits = place.is_last ? options.logits_width() : std::nullopt) {
    width = *logits;
    output.of_bits = options.logits_bits ? "logits_bits" : options.ends_bits ? "ends_bits" : "ranges";
  }
  if (!place.is_last) sums_bits = options.sums_bits;
  if (layer.sums_bits) sums_bits = *layer.sums_bits;
  widens_sums = sums_bits.value_or(width) > width;
  const auto activation = [&](std::int64_t bits) {
    return FakeQuantAttributes{.bits = bits,
                               .symmetric = layer.symmetric.value_or(options.symmetric),
                               .power_of_two = options.scales == ScaleChoice::kPowerOfTwo,
                               .range = activation_range(layer.ranges.value_or(options.ranges), bits),
                               .ema_decay = layer.ema_decay.value_or(options.ema_decay),
                               .delay = options.quant_delay};
  };
  output.attributes = activation(width);
  output.of_symmetry = layer.symmetric ? kOfLayer : "symmetric";
  output.of_range = layer.ranges ? kOfLayer : "ranges";
  output.of_decay = layer.ema_decay ? kOfLayer : "ema_decay";
  sums = output;
  if (!widens_sums) return;
  sums.attributes = activation(*sums_bits);
  sums.of_bits = layer.sums_bits ? kOfLayer : "sums_bits";
}

RangeKind RewriteOptions::weight_range() const { return LayerSettings(*this).weights.attributes.range; }
RangeKind RewriteOptions::activation_range() const { return LayerSettings(*this).output.attributes.range; }
bool RewriteOptions::has_symmetric_weights() const { return LayerSettings(*this).weights.attributes.symmetric; }
bool RewriteOptions::widens_sums() const { return LayerSettings(*this).widens_sums; }

LayerSettingsIndex::LayerSettingsIndex(const Graph& graph, const std::vector<LayerMatch>& matches,
                                       const RewriteOptions& options)
    : options_(options), bits_(options.layer_bits) {
  if (!options.ends_bits && !options.logits_bits && !options.logits_width()) return;
  const std::vector<Node*> order = graph.topological_order();
  const std::unordered_set<const Node*> behind = nodes_behind_layers(order), before = nodes_before_layers(order);
  for (const LayerMatch& match : matches) {
    const Node* from = match.layer->input(1 - match.weight_input).node;
    if (!is_layer(*from) && !behind.contains(from)) first_.insert(match.layer);
    if (!before.contains(match.last())) last_.insert(match.layer);
  }
}

std::unordered_set<const Node*> nodes_behind_layers(const std::vector<Node*>& order) {
  std::unordered_set<const Node*> found;
  for (const Node* node : order)
    if (std::ranges::any_of(node->inputs(),
                            [&](const Output& input) { return is_layer(*input.node) || found.contains(input.node); }))
      found.insert(node);
  return found;
}

LayerSettings LayerSettingsIndex::before_layers() const {
  constexpr int kBitsOfPictures = 8;
  RewriteOptions wide = options_;
  if (!wide.quantize_input) wide.activation_bits = std::max(wide.activation_bits, kBitsOfPictures);
  return LayerSettings(wide);
}

LayerSettings LayerSettingsIndex::of_inputs() const {
  RewriteOptions own = options_;
  own.activation_bits = static_cast<int>(own.input_bits.value_or(own.activation_bits));
  // Residual sums are none of the input's business.
  own.sums_bits = {};
  return LayerSettings(own);
}

LayerSettings LayerSettingsIndex::of(const LayerMatch& match) const {
  return LayerSettings(options_, bits_.first_match(match.layer->name()),
                       {.is_first = first_.contains(match.layer), .is_last = last_.contains(match.layer)});
}

}  // namespace miniqat::quantize
