#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/graph/graph.h"
#include "datasets/dataset.h"
#include "quantize/rewrite/rewrite.h"
#include "training/settings/settings.h"

namespace miniqat::training {

inline constexpr const char* kFoldingHelp =
    "batch norms while training: tf (corrections, a second convolution for the statistics); single (one convolution, statistics of its quantized output); late (weights quantized without them, scaled when integers are made; needs --per-channel)";

struct Task;

struct RewriteSettings : quantize::RewriteOptions {
  /// The file that layer_bits come from; "" for none.
  std::string bits_config;

  template <class Visitor>
  static void visit(Visitor&& visitor);
};

/// RangeChoice::kByTask is kAuto for a network of a task without numbers as answers, whose values survive that averages
/// of minima and maxima cut the rare ones (docs/mlperf-tiny.md has what numbers lose). Any other choice as it is.
quantize::RangeChoice ranges_for(quantize::RangeChoice ranges, const Task& task);

/// The settings for a network of that task on such data: ranges are those of the task, and an input of numbers gets a
/// quantizer, of 8 bits unless input_bits says otherwise, since no data set brings their grid.
RewriteSettings rewrite_for(const RewriteSettings& settings, const Task& task, const datasets::Dataset& data);

inline const auto& settings_of_rewrite() {
  using S = RewriteSettings;
  static const std::tuple kTable{
      Setting("weight_bits", &S::weight_bits, "bits of weights, 2..16; integer models hold 2..8"),
      Setting("activation_bits", &S::activation_bits, "bits of activations, 2..16; integer models: 2..8"),
      Setting(
          "logits_bits", &S::logits_bits,
          "bits of the network's output, before --bits-config; default: --ends-bits, else 8 if activation ranges are learned, else --activation-bits"),
      Setting(
          "ends_bits", &S::ends_bits,
          "bits of the weights of the first and last layers, and of the logits, before --bits-config (what the last layer reads keeps --activation-bits); default: as all others"),
      Setting(
          "sums_bits", &S::sums_bits,
          "bits of residual sums and their operands; a second quantizer narrows them to --activation-bits for layers; default: --activation-bits"),
      Setting("bits_config", &S::bits_config, "a JSON file of patterns on layer names with bits of their own"),
      Setting(
          "quant_delay", &S::quant_delay,
          "the step that is the first to quantize; observed ranges are observed from the first, learned ones start then"),
      Setting("ema_decay", &S::ema_decay, "decay of the activation ranges' moving average"),
      Setting("per_channel", &S::per_channel, "one weight range per output channel"),
      Setting("symmetric", &S::symmetric, "ranges symmetric around 0, of weights and activations"),
      Setting("symmetric_weights", &S::symmetric_weights, "ranges of weights symmetric around 0"),
      Setting("ranges", &S::ranges, quantize::help_of_range_choices()),
      Setting("asymmetric_weights", &S::asymmetric_weights, "learned ranges of weights have two ends of their own"),
      Setting("full_range_weights", &S::full_range_weights, "weights use all integers: with 2 bits four, not three"),
      Setting("scales", &S::scales,
              "power-of-two: scales of all quantizers are powers of two, so that hardware requantizes by shifts"),
      Setting("freeze_bn_delay", &S::freeze_bn_delay,
              "step from which batch norms use their moving statistics and stop updating them; default: never"),
      Setting("bn_fold", &S::bn_fold, kFoldingHelp),
      Setting("quantize_input", &S::quantize_input,
              "quantize the graph's input, too; an input of numbers instead of pictures always is"),
      Setting("input_bits", &S::input_bits,
              "bits of the input's quantizer; default: --activation-bits, 8 for an input of numbers"),
      Setting("float_pools", &S::float_pools,
              "no quantizers after AvgPool, Mean and Concat; such a graph has no integer model"),
      Setting("scope", &S::scope, "rewrite only layers under this name scope; an integer model takes all layers"),
      Setting("strict", &S::strict, "fail when an edge into a layer stays float")};
  return kTable;
}

template <class Visitor>
void RewriteSettings::visit(Visitor&& visitor) {
  visit_table(settings_of_rewrite(), visitor);
}

/// Reads settings.bits_config, if it is given, into settings.layer_bits. Throws Error for a file that cannot be read
/// and UsageError for one that says what cannot be.
void load_layer_bits(RewriteSettings& settings);

/// A graph that was rewritten before keeps its quantizers; whoever asks for other ones has to hear it. Throws
/// UsageError for the report's first conflict whose setting was asked for: it names the flag, its value and what the
/// graph of `source` has. A setting was asked for if it is among those `given`, by name, or has another value than
/// in `usual` settings, where nobody asked.
void require_as_asked(const quantize::RewriteReport& report, const RewriteSettings& settings,
                      const RewriteSettings& usual, const std::vector<std::string>& given, const std::string& source);

/// Throws UsageError where no node of `graph`, which `source` names, is in the scope of --scope, with the scope that
/// was probably meant. "" is every scope.
void require_scope(const Graph& graph, const std::string& scope, const std::string& source);

/// Throws Error where `graph`, rewritten from `model` in that scope, has no quantizer: nobody who asks for quantization
/// wants a float network under its name. `advice` ends the message.
void require_quantizers(const Graph& graph, const std::string& scope, const std::string& model,
                        const std::string& advice = "");

}  // namespace miniqat::training
