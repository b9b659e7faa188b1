#pragma once

#include "quantize/rewrite.h"

namespace miniqat::cli {

/// The fields of quantize::RewriteOptions for flags and JSON; see cli/settings.h.
template <class Visitor>
void visit_rewrite_options(Visitor&& visitor) {
  visitor(
      "weight_bits", [](auto& o) -> auto& { return o.weight_bits; }, "bits of weights, 2..16");
  visitor(
      "activation_bits", [](auto& o) -> auto& { return o.activation_bits; }, "bits of activations, 2..16");
  visitor(
      "quant_delay", [](auto& o) -> auto& { return o.quant_delay; },
      "train in float for so many steps first, observing ranges");
  visitor(
      "ema_decay", [](auto& o) -> auto& { return o.ema_decay; }, "decay of the activation ranges' moving average");
  visitor(
      "per_channel", [](auto& o) -> auto& { return o.per_channel; }, "one weight range per output channel");
  visitor(
      "symmetric", [](auto& o) -> auto& { return o.symmetric; }, "ranges symmetric around 0");
  visitor(
      "freeze_bn_delay", [](auto& o) -> auto& { return o.freeze_bn_delay; },
      "steps after which batch norm uses its moving statistics");
  visitor(
      "quantize_input", [](auto& o) -> auto& { return o.quantize_input; }, "quantize the graph's input, too");
  visitor(
      "scope", [](auto& o) -> auto& { return o.scope; }, "rewrite only layers under this name scope");
  visitor(
      "strict", [](auto& o) -> auto& { return o.strict; }, "fail when an edge into a layer stays float");
}

struct RewriteSettings : quantize::RewriteOptions {
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_rewrite_options(visitor);
  }
};

}  // namespace miniqat::cli
