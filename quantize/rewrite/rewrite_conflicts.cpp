#include "quantize/rewrite/rewrite_conflicts.h"

#include "core/error.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/quantization.h"

namespace miniqat::quantize {
namespace {

/// Compares quantizers with what the options would have made of them: of several layers that share one, the first's.
class QuantizerComparison {
 public:
  QuantizerComparison(const std::unordered_set<std::string>& names, const Verdicts& verdicts,
                      const RewriteOptions& options, bool is_training)
      : names_(names), verdicts_(verdicts), options_(options), is_training_(is_training) {}

  void compare_layer(const LayerVerdict& layer) {
    if (is_new(layer.weights.quantizer)) compare_weights(layer);
    for (const TensorVerdict* tensor : layer.outputs()) {
      if (is_new(tensor->quantizer)) compare_activations(*tensor->quantizer, tensor->asked, layer.settings.bits);
      if (!tensor->is_wide) continue;
      for (const Node* narrow : tensor->for_layers)
        if (is_new(narrow)) compare_activations(*narrow, layer.settings.output, layer.settings.bits);
    }
  }

  void compare_other(const Node& quantizer) {
    if (!is_new(&quantizer) || !in_scope(quantizer.name(), options_.scope)) return;
    const Output tensor = quantizer.input(0);
    const bool is_for_layers = is_quantizer(*source_through(tensor, OpRole::kKeepsRange).node);
    const bool is_sum = verdicts_.sums.keep(*tensor.node) && !is_for_layers && !of_input(quantizer);
    const Node& producer = *source_through(tensor, OpRole::kQuantizer | OpRole::kKeepsRange).node;
    const LayerSettings& asked = of_input(quantizer) ? verdicts_.others : verdicts_.without_layer(producer);
    compare_activations(quantizer, is_sum ? asked.sums : asked.output, nullptr);
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

  static bool of_input(const Node& quantizer) { return quantizer.input(0).node->as<Placeholder>() != nullptr; }

  bool is_new(const Node* node) {
    return node != nullptr && node->as<FakeQuant>() != nullptr && names_.contains(node->name()) &&
           seen_.insert(node).second;
  }

  void add(const Node& quantizer, bool from_layer_bits, const char* setting, const std::string& has,
           const std::string& asked) {
    conflicts.push_back(
        {from_layer_bits ? "bits_config" : setting, concat(quantizer.name(), " has ", has, ", not ", asked)});
  }

  void compare_weights(const LayerVerdict& layer) {
    const Node& quantizer = *layer.weights.quantizer;
    const LayerBits* bits = layer.settings.bits;
    const FakeQuantAttributes& asked = layer.weights.asked.attributes;
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const RangeKindTraits& kind = traits_of(own.range);
    if (!kind.follows_tensor() && !kind.learned) return;
    const auto integers = [](bool narrow) { return narrow ? "a narrow range" : "all integers"; };
    if (own.narrow_range != asked.narrow_range)
      add(quantizer, false, "full_range_weights", integers(own.narrow_range), integers(asked.narrow_range));
    compare_bits(quantizer, layer.weights.asked);
    if (own.symmetric != asked.symmetric)
      add(quantizer, bits && (bits->symmetric || bits->symmetric_weights || bits->ranges),
          layer.settings.of_symmetric_weights, symmetry(own.symmetric), symmetry(asked.symmetric));
    compare_scales(quantizer, asked);
    compare_kind(quantizer, asked, bits);
    if (own.per_channel != asked.per_channel)
      add(quantizer, bits && bits->per_channel, "per_channel", ranges(own.per_channel), ranges(asked.per_channel));
    compare_delay(quantizer);
  }

  void compare_activations(const Node& quantizer, const QuantizerSettings& settings, const LayerBits* bits) {
    const FakeQuantAttributes& asked = settings.attributes;
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const RangeKindTraits& kind = traits_of(own.range);
    if (kind.follows_tensor() || (!kind.changes() && !is_of_known_range(quantizer))) return;
    const std::string& of = quantizer.input(0).node->name();
    if (!options_.quantize_input && of_input(quantizer))
      conflicts.push_back({"quantize_input", concat(of, " has the quantizer ", quantizer.name())});
    if (options_.float_pools && is_pool(*quantizer.input(0).node))
      conflicts.push_back({"float_pools", concat(of, " has the quantizer ", quantizer.name())});
    compare_bits(quantizer, settings);
    if (own.symmetric != asked.symmetric)
      add(quantizer, bits && bits->symmetric, "symmetric", symmetry(own.symmetric), symmetry(asked.symmetric));
    compare_scales(quantizer, asked);
    if (kind.changes()) compare_kind(quantizer, asked, bits);
    if (kind.averages && own.ema_decay != asked.ema_decay)
      add(quantizer, bits && bits->ema_decay, "ema_decay", concat("decay ", own.ema_decay), concat(asked.ema_decay));
    compare_delay(quantizer);
  }

  void compare_bits(const Node& quantizer, const QuantizerSettings& asked) {
    const std::int64_t own = quantizer.as<FakeQuant>()->bits;
    if (own != asked.attributes.bits)
      add(quantizer, false, asked.of_bits, concat(own, " bits"), concat(asked.attributes.bits));
  }

  void compare_kind(const Node& quantizer, const FakeQuantAttributes& asked, const LayerBits* bits) {
    const RangeKind own = quantizer.as<FakeQuant>()->range;
    const auto text = [](RangeKind kind) { return concat("a ", traits_of(kind).text); };
    if (own != asked.range) add(quantizer, bits && bits->ranges, "ranges", text(own), text(asked.range));
  }

  void compare_scales(const Node& quantizer, const FakeQuantAttributes& asked) {
    const bool own = quantizer.as<FakeQuant>()->power_of_two;
    const auto text = [](bool power) { return power ? "a scale that is a power of two" : "any scale"; };
    if (own != asked.power_of_two) add(quantizer, false, "scales", text(own), text(!own));
  }

  void compare_delay(const Node& quantizer) {
    const std::optional<std::int64_t> own = quant_delay_of(quantizer);
    if (is_training_ && own && *own != options_.quant_delay)
      add(quantizer, false, "quant_delay", concat("a delay of ", *own), concat(options_.quant_delay));
  }

  static std::string symmetry(bool symmetric) { return symmetric ? "a symmetric range" : "an asymmetric one"; }
  static std::string ranges(bool per_channel) { return per_channel ? "a range per channel" : "one range"; }

  const std::unordered_set<std::string>& names_;
  const Verdicts& verdicts_;
  const RewriteOptions& options_;
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

/// One that always normalises with its moving statistics has nothing to freeze.
void compare_freeze(const Node& node, const RewriteOptions& options, std::vector<SettingConflict>& conflicts) {
  if (!node.as<layers::BatchNorm>()->is_training) return;
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

std::vector<SettingConflict> DoneBefore::conflicts(const Graph& graph, const Verdicts& verdicts,
                                                   const RewriteOptions& options, bool is_training) const {
  if (quantizers_.empty() && batch_norms_.empty()) return {};
  QuantizerComparison comparison(quantizers_, verdicts, options, is_training);
  for (const LayerVerdict& layer : verdicts.layers) comparison.compare_layer(layer);
  for (const Node* node : graph.nodes()) {
    if (node->as<FakeQuant>() && verdicts.inserted.empty()) comparison.compare_scope(*node);
    if (node->as<FakeQuant>()) comparison.compare_other(*node);
  }
  for (const auto& [name, folding] : batch_norms_) {
    compare_folding(name, folding, options, is_training, comparison.conflicts);
    if (is_training) compare_freeze(graph.at(name), options, comparison.conflicts);
  }
  return std::move(comparison.conflicts);
}

}  // namespace miniqat::quantize
