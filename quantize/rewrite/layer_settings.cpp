#include "quantize/rewrite/layer_settings.h"

#include <algorithm>
#include <cmath>

#include "core/text/error.h"
#include "core/text/quote.h"
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

void check_bits(const char* option, std::int64_t bits) {
  if (bits < 2 || bits > 16) fail(option, " must be 2 to 16, not ", bits);
}

void check_steps(const char* option, std::int64_t steps) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (steps < 0 || steps > kMost) fail(option, " must be 0 to 2^40 steps, not ", steps);
}

}  // namespace

LayerSettings::LayerSettings(const RewriteOptions& options, const LayerBits* own, LayerPlace place) {
  static const LayerBits kNone;
  const LayerBits& layer = own ? *own : kNone;
  pattern = layer.pattern;
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

void RewriteOptions::check() const {
  check_bits("weight_bits", weight_bits);
  check_bits("activation_bits", activation_bits);
  if (logits_bits) check_bits("logits_bits", *logits_bits);
  if (ends_bits) check_bits("ends_bits", *ends_bits);
  if (input_bits) check_bits("input_bits", *input_bits);
  if (sums_bits) check_bits("sums_bits", *sums_bits);
  if (sums_bits && *sums_bits < activation_bits)
    fail("sums_bits must be ", activation_bits, " or more, the bits of activations, not ", *sums_bits);
  check_steps("quant_delay", quant_delay);
  if (freeze_bn_delay) check_steps("freeze_bn_delay", *freeze_bn_delay);
  if (!std::isfinite(ema_decay) || ema_decay < 0 || ema_decay >= 1)
    fail("ema_decay must be in [0, 1), is ", exact(ema_decay));
  if (bn_fold == BnFold::kLate && !per_channel)
    fail("`bn_fold` late needs `per_channel`: gamma / sigma becomes part of the scale of each channel's weights");
  if (bn_fold == BnFold::kLate && scales == ScaleChoice::kPowerOfTwo)
    fail(
        "`bn_fold` late makes gamma / sigma part of the scales; with `scales` power-of-two these would be no powers of two");
  check_layer_bits(layer_bits, "bits_config");
  for (const LayerBits& bits : layer_bits) {
    if (bits.symmetric.value_or(symmetric) && !bits.symmetric_weights.value_or(true))
      fail("bits_config: pattern ", quote(bits.pattern),
           ": symmetric_weights cannot be false where symmetric, which includes the weights, is true");
    const int narrow = bits.activation_bits.value_or(activation_bits);
    if (bits.sums_bits.value_or(narrow) < narrow)
      fail("bits_config: pattern ", quote(bits.pattern), ": sums_bits must be ", narrow,
           " or more, the bits of activations, not ", *bits.sums_bits);
  }
}

RangeKind RewriteOptions::weight_range() const { return LayerSettings(*this).weights.attributes.range; }
RangeKind RewriteOptions::activation_range() const { return LayerSettings(*this).output.attributes.range; }
bool RewriteOptions::has_symmetric_weights() const { return LayerSettings(*this).weights.attributes.symmetric; }
bool RewriteOptions::widens_sums() const { return LayerSettings(*this).widens_sums; }

std::optional<int> RewriteOptions::logits_width() const {
  constexpr int kUsual = 8;
  std::int64_t bits = logits_bits.value_or(ends_bits.value_or(activation_bits));
  if (!logits_bits && !ends_bits && traits_of(activation_range()).learned) bits = std::max(bits, std::int64_t{kUsual});
  return bits == activation_bits ? std::nullopt : std::optional(static_cast<int>(bits));
}

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

LayerSettings LayerSettingsIndex::of(const LayerMatch& match, const LayerBits* bits) const {
  return LayerSettings(options_, bits,
                       {.is_first = first_.contains(match.layer), .is_last = last_.contains(match.layer)});
}

}  // namespace miniqat::quantize
