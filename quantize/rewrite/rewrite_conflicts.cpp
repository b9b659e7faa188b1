#include "quantize/rewrite/rewrite_conflicts.h"

#include "core/error.h"
#include "core/graph/op_queries.h"
#include "layers/batch_norm.h"
#include "quantize/delays.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/insert_fake_quant.h"
#include "quantize/rewrite/layer_bits.h"
#include "quantize/rewrite/layer_options.h"
#include "quantize/rewrite/residual_sums.h"

namespace miniqat::quantize {
namespace {

/// Compares quantizers with what the options would have made of them: of several layers that share one, the first's.
class QuantizerComparison {
 public:
  QuantizerComparison(const std::unordered_set<std::string>& names, const Graph& graph, const LayerSearch& layers,
                      const RewriteOptions& options, bool is_training)
      : names_(names),
        options_(options),
        layer_options_(graph, layers.matches, options),
        axes_(layers.matches),
        sums_(graph),
        is_training_(is_training) {}

  void compare_layer(const LayerMatch& match) {
    const LayerSettings settings = layer_options_.of(match);
    const Node* weights = source_through(match.layer->input(match.weight_input), kIdentity).node;
    if (is_new(weights)) compare_weights(*weights, match, settings);
    if (match.bypass) compare_output(*match.before_bypass(), settings);
    compare_output(*match.last(), settings);
    if (match.post_activation_bypass) compare_output(*match.post_activation_bypass, settings);
  }

  void compare_other(const Node& quantizer) {
    if (!is_new(&quantizer) || !in_scope(quantizer.name(), options_.scope)) return;
    const LayerSettings settings = {.options = options_.with(nullptr)};
    const Output tensor = quantizer.input(0);
    const bool is_for_layers = is_quantizer(*source_through(tensor, OpRole::kKeepsRange).node);
    const bool is_wide = sums_.keep(*tensor.node) && !is_for_layers && !of_input(quantizer);
    compare_activations(quantizer, is_wide ? settings.for_sums() : settings);
  }

  /// After all layers in scope: what none of them claims is another scope's.
  void compare_scope(const Node& quantizer) {
    const bool made_here = names_.contains(quantizer.name()) && is_rewrites_own(quantizer);
    if (!made_here || seen_.contains(&quantizer) || in_scope(quantizer.name(), options_.scope) || of_input(quantizer))
      return;
    conflicts.push_back({"scope", concat(quantizer.name(), " is outside of it")});
  }

  std::vector<SettingConflict> conflicts;

 private:
  static bool is_rewrites_own(const Node& quantizer) {
    return traits_of(quantizer.as<FakeQuant>()->range).changes() || is_of_known_range(quantizer);
  }

  static bool is_of_known_range(const Node& quantizer) {
    return output_range(quantizer.input(0).node->type()).has_value();
  }

  static bool of_input(const Node& quantizer) { return quantizer.input(0).node->type() == "Placeholder"; }

  bool is_new(const Node* node) {
    return node->as<FakeQuant>() != nullptr && names_.contains(node->name()) && seen_.insert(node).second;
  }

  void add(const Node& quantizer, bool from_layer_bits, const char* setting, const std::string& has,
           const std::string& asked) {
    conflicts.push_back(
        {from_layer_bits ? "bits_config" : setting, concat(quantizer.name(), " has ", has, ", not ", asked)});
  }

  void compare_output(const Node& producer, const LayerSettings& settings) {
    const Node* quantizer = quantizer_after(producer.output());
    if (!quantizer) return;
    const bool is_wide = sums_.keep(producer) && settings.options.widens_sums();
    if (is_new(quantizer)) compare_activations(*quantizer, is_wide ? settings.for_sums() : settings);
    if (!is_wide) return;
    for (const Node* narrow : quantizers_for_layers(*quantizer))
      if (is_new(narrow)) compare_activations(*narrow, settings);
  }

  void compare_weights(const Node& quantizer, const LayerMatch& match, const LayerSettings& settings) {
    const RewriteOptions& options = settings.options;
    const LayerBits* bits = settings.bits;
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const RangeKindTraits& kind = traits_of(own.range);
    if (!kind.follows_tensor() && !kind.learned) return;
    if (own.narrow_range == options.full_range_weights)
      add(quantizer, false, "full_range_weights", own.narrow_range ? "a narrow range" : "all integers",
          own.narrow_range ? "all integers" : "a narrow range");
    compare_bits(quantizer, settings.of_weight_bits, options.weight_bits);
    if (own.symmetric != options.has_symmetric_weights())
      add(quantizer, bits && (bits->symmetric || bits->symmetric_weights || bits->ranges), symmetry_setting(options),
          symmetry(own.symmetric), symmetry(!own.symmetric));
    compare_scales(quantizer);
    compare_kind(quantizer, bits, options.weight_range());
    const bool per_channel = options.per_channel && axes_.of(match) > 0;
    if (own.per_channel != per_channel)
      add(quantizer, bits && bits->per_channel, "per_channel", ranges(own.per_channel), ranges(per_channel));
    compare_delay(quantizer);
  }

  void compare_activations(const Node& quantizer, const LayerSettings& settings) {
    const RewriteOptions& options = settings.options;
    const LayerBits* bits = settings.bits;
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const RangeKindTraits& kind = traits_of(own.range);
    if (!kind.averages && !kind.learned && (kind.observes || !is_of_known_range(quantizer))) return;
    const std::string& of = quantizer.input(0).node->name();
    if (!options.quantize_input && of_input(quantizer))
      conflicts.push_back({"quantize_input", concat(of, " has the quantizer ", quantizer.name())});
    if (options.float_pools && is_pool(*quantizer.input(0).node))
      conflicts.push_back({"float_pools", concat(of, " has the quantizer ", quantizer.name())});
    compare_bits(quantizer, settings.of_activation_bits, options.activation_bits);
    if (own.symmetric != options.symmetric)
      add(quantizer, bits && bits->symmetric, "symmetric", symmetry(own.symmetric), symmetry(options.symmetric));
    compare_scales(quantizer);
    if (kind.changes()) compare_kind(quantizer, bits, options.activation_range());
    if (kind.averages && own.ema_decay != options.ema_decay)
      add(quantizer, bits && bits->ema_decay, "ema_decay", concat("decay ", own.ema_decay), concat(options.ema_decay));
    compare_delay(quantizer);
  }

  void compare_bits(const Node& quantizer, const char* setting, int asked) {
    const std::int64_t own = quantizer.as<FakeQuant>()->bits;
    if (own != asked) add(quantizer, false, setting, concat(own, " bits"), concat(asked));
  }

  void compare_kind(const Node& quantizer, const LayerBits* bits, RangeKind asked) {
    const bool own = traits_of(quantizer.as<FakeQuant>()->range).learned;
    const auto text = [](bool learned) { return learned ? "a learned range" : "an observed one"; };
    if (own != traits_of(asked).learned) add(quantizer, bits && bits->ranges, "ranges", text(own), text(!own));
  }

  void compare_scales(const Node& quantizer) {
    const bool own = quantizer.as<FakeQuant>()->power_of_two;
    const auto text = [](bool power) { return power ? "a scale that is a power of two" : "any scale"; };
    if (own != (options_.scales == ScaleChoice::kPowerOfTwo)) add(quantizer, false, "scales", text(own), text(!own));
  }

  void compare_delay(const Node& quantizer) {
    const std::optional<std::int64_t> own = quant_delay_of(quantizer);
    if (is_training_ && own && *own != options_.quant_delay)
      add(quantizer, false, "quant_delay", concat("a delay of ", *own), concat(options_.quant_delay));
  }

  /// What decides about the symmetry of weights.
  static const char* symmetry_setting(const RewriteOptions& options) {
    if (options.symmetric) return "symmetric";
    const bool is_by_default = traits_of(options.weight_range()).learned && !options.symmetric_weights;
    return is_by_default ? "asymmetric_weights" : "symmetric_weights";
  }

  static std::string symmetry(bool symmetric) { return symmetric ? "a symmetric range" : "an asymmetric one"; }
  static std::string ranges(bool per_channel) { return per_channel ? "a range per channel" : "one range"; }

  const std::unordered_set<std::string>& names_;
  const RewriteOptions& options_;
  const LayerOptions layer_options_;
  const WeightChannelAxes axes_;
  const ResidualSums sums_;
  const bool is_training_;
  std::unordered_set<const Node*> seen_;
};

void compare_folding(const std::string& batch_norm, BnFold own, const RewriteOptions& options, bool is_training,
                     std::vector<SettingConflict>& conflicts) {
  const auto name = [](BnFold fold) { return names_of(fold)[static_cast<std::size_t>(fold)]; };
  const bool same_in_evaluation = own != BnFold::kLate && options.bn_fold != BnFold::kLate;
  if (own == options.bn_fold || (!is_training && same_in_evaluation)) return;
  conflicts.push_back(
      {"bn_fold", concat(batch_norm, " is folded as by \"", name(own), "\", not \"", name(options.bn_fold), "\"")});
}

void compare_freeze(const Node& node, const RewriteOptions& options, std::vector<SettingConflict>& conflicts) {
  const std::int64_t freeze = node.as<layers::BatchNorm>()->freeze_delay;
  const std::int64_t asked = options.freeze_bn_delay.value_or(-1);
  const auto text = [](std::int64_t steps) {
    return steps < 0 ? std::string("never") : concat("after ", steps, " steps");
  };
  if (freeze != asked)
    conflicts.push_back({"freeze_bn_delay", concat(node.name(), " freezes ", text(freeze), ", not ", text(asked))});
}

}  // namespace

DoneBefore::DoneBefore(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    if (node->as<FakeQuant>()) quantizers_.insert(node->name());
    if (const auto folding = folding_of(*node)) batch_norms_.emplace_back(node->name(), *folding);
  }
}

std::vector<SettingConflict> DoneBefore::conflicts(const Graph& graph, const LayerSearch& layers,
                                                   const RewriteOptions& options, bool is_training,
                                                   bool inserted) const {
  if (quantizers_.empty() && batch_norms_.empty()) return {};
  QuantizerComparison comparison(quantizers_, graph, layers, options, is_training);
  for (const LayerMatch& match : layers.matches) comparison.compare_layer(match);
  for (const Node* node : graph.nodes()) {
    if (node->as<FakeQuant>() && !inserted) comparison.compare_scope(*node);
    if (node->as<FakeQuant>()) comparison.compare_other(*node);
  }
  for (const auto& [name, folding] : batch_norms_) {
    compare_folding(name, folding, options, is_training, comparison.conflicts);
    if (is_training) compare_freeze(graph.at(name), options, comparison.conflicts);
  }
  return std::move(comparison.conflicts);
}

}  // namespace miniqat::quantize
