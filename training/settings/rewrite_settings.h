#pragma once

#include <string>

#include "quantize/rewrite/rewrite.h"

namespace miniqat::training {

/// The fields of RewriteSettings that give bits.
template <class Visitor>
void visit_widths(Visitor&& visitor) {
  visitor(
      "weight_bits", [](auto& o) -> auto& { return o.weight_bits; },
      "bits of weights, 2..16; integer models hold 2..8");
  visitor(
      "activation_bits", [](auto& o) -> auto& { return o.activation_bits; },
      "bits of activations, 2..16; integer models hold 2..8");
  visitor(
      "logits_bits", [](auto& o) -> auto& { return o.logits_bits; },
      "bits of the network's output, before --bits-config; default: --ends-bits, else 8 if activation ranges are "
      "learned, else --activation-bits");
  visitor(
      "ends_bits", [](auto& o) -> auto& { return o.ends_bits; },
      "bits of the weights of the first and last layers, and of the logits, before --bits-config (what the last layer "
      "reads keeps --activation-bits); default: as all others");
  visitor(
      "sums_bits", [](auto& o) -> auto& { return o.sums_bits; },
      "bits of residual sums and their operands; a second quantizer narrows them to --activation-bits for layers; "
      "default: --activation-bits");
  visitor(
      "bits_config", [](auto& o) -> auto& { return o.bits_config; },
      "a JSON file of patterns on layer names with bits of their own");
}

inline constexpr const char* kFoldingHelp =
    "batch norms while training: tf (corrections, a second convolution for the statistics); single (one convolution, "
    "statistics of its quantized output); late (weights quantized without them, scaled when integers are made; needs "
    "--per-channel)";

/// The fields of RewriteSettings for flags and JSON; see training/settings/settings.h.
template <class Visitor>
void visit_rewrite_options(Visitor&& visitor) {
  visit_widths(visitor);
  visitor(
      "quant_delay", [](auto& o) -> auto& { return o.quant_delay; },
      "steps in float before quantization begins; observed ranges are observed meanwhile, learned ones start then");
  visitor(
      "ema_decay", [](auto& o) -> auto& { return o.ema_decay; }, "decay of the activation ranges' moving average");
  visitor(
      "per_channel", [](auto& o) -> auto& { return o.per_channel; }, "one weight range per output channel");
  visitor(
      "symmetric", [](auto& o) -> auto& { return o.symmetric; },
      "ranges symmetric around 0, of weights and activations");
  visitor(
      "symmetric_weights", [](auto& o) -> auto& { return o.symmetric_weights; },
      "ranges of weights symmetric around 0");
  visitor(
      "ranges", [](auto& o) -> auto& { return o.ranges; }, quantize::help_of_range_choices());
  visitor(
      "asymmetric_weights", [](auto& o) -> auto& { return o.asymmetric_weights; },
      "learned ranges of weights have two ends of their own");
  visitor(
      "full_range_weights", [](auto& o) -> auto& { return o.full_range_weights; },
      "weights use all integers: with 2 bits four, not three");
  visitor(
      "scales", [](auto& o) -> auto& { return o.scales; },
      "power-of-two: scales of all quantizers are powers of two, so that hardware requantizes by shifts");
  visitor(
      "freeze_bn_delay", [](auto& o) -> auto& { return o.freeze_bn_delay; },
      "step from which batch norms use their moving statistics and stop updating them; default: never");
  visitor(
      "bn_fold", [](auto& o) -> auto& { return o.bn_fold; }, kFoldingHelp);
  visitor(
      "quantize_input", [](auto& o) -> auto& { return o.quantize_input; }, "quantize the graph's input, too");
  visitor(
      "float_pools", [](auto& o) -> auto& { return o.float_pools; },
      "no quantizers after AvgPool, Mean and Concat; such a graph has no integer model");
  visitor(
      "scope", [](auto& o) -> auto& { return o.scope; },
      "rewrite only layers under this name scope; an integer model takes all layers");
  visitor(
      "strict", [](auto& o) -> auto& { return o.strict; }, "fail when an edge into a layer stays float");
}

struct RewriteSettings : quantize::RewriteOptions {
  /// The file that layer_bits come from; "" for none.
  std::string bits_config;

  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_rewrite_options(visitor);
  }
};

/// Reads settings.bits_config, if it is given, into settings.layer_bits. Throws Error for a file that cannot be read
/// and UsageError for one that says what cannot be.
void load_layer_bits(RewriteSettings& settings);

}  // namespace miniqat::training
