#include "quantize/rewrite/rewrite_conflicts.h"

#include <unordered_set>

#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/quantization.h"

namespace miniqat::quantize {
namespace {

/// Compares quantizers from before with what is asked of them now: of several layers that share one, by the first.
class QuantizerComparison {
 public:
  QuantizerComparison(const Decisions& decisions, const std::vector<std::string>& inserted)
      : decisions_(decisions), inserted_(inserted.begin(), inserted.end()) {}

  void compare_layer(const LayerDecision& layer) {
    if (is_next(layer.weights.quantizer())) compare_weights(layer.weights);
    for (const TensorDecision& tensor : layer.outputs) {
      if (is_next(tensor.quantizer())) compare_activations(*tensor.quantizer(), tensor.asked);
      if (!tensor.is_wide) continue;
      for (const Node* narrow : tensor.for_layers())
        if (is_next(narrow)) compare_activations(*narrow, layer.settings.output);
    }
  }

  void compare_other(const Node& quantizer) {
    if (!is_next(&quantizer) || !decisions_.search.scope.has(quantizer)) return;
    const Output tensor = quantizer.input(0);
    const bool is_for_layers = is_quantizer(*source_through(tensor, OpRole::kKeepsRange).node);
    const bool is_sum = decisions_.sums.keep(*tensor.node) && !is_for_layers && !of_input(quantizer);
    const Node& producer = *source_through(tensor, OpRole::kQuantizer | OpRole::kKeepsRange).node;
    const LayerSettings& asked = of_input(quantizer) ? decisions_.others : decisions_.without_layer(producer);
    compare_activations(quantizer, is_sum ? asked.sums : asked.output);
  }

  /// After all layers in scope, where nothing was inserted: what none of them claims is another scope's.
  void compare_scope(const Node& quantizer) {
    if (!inserted_.empty() || !is_rewrites_own(quantizer) || seen_.contains(&quantizer)) return;
    if (!decisions_.search.scope.has(quantizer) && !of_input(quantizer))
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

  /// Whether it was there before and has not been compared yet.
  bool is_next(const Node* node) {
    return node && node->as<FakeQuant>() && !inserted_.contains(node->name()) && seen_.insert(node).second;
  }

  template <class Text>
  void compare(const Node& quantizer, const char* setting, auto own, auto asked, const Text& text) {
    if (own != asked)
      conflicts.push_back({setting, concat(quantizer.name(), " has ", text(own), ", not ", text(asked))});
  }

  void compare_weights(const TensorDecision& weights) {
    const Node& quantizer = *weights.quantizer();
    const FakeQuantAttributes& asked = weights.asked.attributes;
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const RangeKindTraits& kind = traits_of(own.range);
    if (!kind.follows_tensor() && !kind.learned) return;
    compare(quantizer, "full_range_weights", own.narrow_range, asked.narrow_range,
            [](bool narrow) { return narrow ? "a narrow range" : "all integers"; });
    compare_grid(quantizer, weights.asked);
    compare_kind(quantizer, weights.asked);
    compare(quantizer, weights.asked.of_channels, own.per_channel, asked.per_channel,
            [](bool per_channel) { return per_channel ? "a range per channel" : "one range"; });
    compare_delay(quantizer, asked);
  }

  void compare_activations(const Node& quantizer, const QuantizerSettings& settings) {
    const FakeQuantAttributes& asked = settings.attributes;
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const RangeKindTraits& kind = traits_of(own.range);
    if (kind.follows_tensor() || (!kind.changes() && !is_of_known_range(quantizer))) return;
    const Node& of = *quantizer.input(0).node;
    if (const auto unwanted = decisions_.unwanted.find(&of); unwanted != decisions_.unwanted.end())
      conflicts.push_back({unwanted->second, concat(of.name(), " has the quantizer ", quantizer.name())});
    compare_grid(quantizer, settings);
    if (kind.changes()) compare_kind(quantizer, settings);
    if (kind.averages && own.ema_decay != asked.ema_decay)
      conflicts.push_back(
          {settings.of_decay, concat(quantizer.name(), " has decay ", own.ema_decay, ", not ", asked.ema_decay)});
    compare_delay(quantizer, asked);
  }

  void compare_grid(const Node& quantizer, const QuantizerSettings& settings) {
    const FakeQuantAttributes& own = *quantizer.as<FakeQuant>();
    const FakeQuantAttributes& asked = settings.attributes;
    if (own.bits != asked.bits)
      conflicts.push_back({settings.of_bits, concat(quantizer.name(), " has ", own.bits, " bits, not ", asked.bits)});
    compare(quantizer, settings.of_symmetry, own.symmetric, asked.symmetric,
            [](bool symmetric) { return symmetric ? "a symmetric range" : "an asymmetric one"; });
    compare(quantizer, "scales", own.power_of_two, asked.power_of_two,
            [](bool power) { return power ? "a scale that is a power of two" : "any scale"; });
  }

  void compare_kind(const Node& quantizer, const QuantizerSettings& settings) {
    compare(quantizer, settings.of_range, quantizer.as<FakeQuant>()->range, settings.attributes.range,
            [](RangeKind kind) { return concat("a ", traits_of(kind).text); });
  }

  void compare_delay(const Node& quantizer, const FakeQuantAttributes& asked) {
    const std::optional<std::int64_t> own = quant_delay_of(quantizer);
    if (decisions_.is_training && own && *own != asked.delay)
      conflicts.push_back({"quant_delay", concat(quantizer.name(), " has a delay of ", *own, ", not ", asked.delay)});
  }

  const Decisions& decisions_;
  const std::unordered_set<std::string> inserted_;
  std::unordered_set<const Node*> seen_;
};

void compare_folding(const FoldedBefore& own, const Decisions& asked, std::vector<SettingConflict>& conflicts) {
  const auto name = [](BnFold fold) { return names_of(fold)[static_cast<std::size_t>(fold)]; };
  const bool same_in_evaluation = own.folding != BnFold::kLate && asked.bn_fold != BnFold::kLate;
  if (own.folding == asked.bn_fold || (!asked.is_training && same_in_evaluation)) return;
  conflicts.push_back({"bn_fold", concat(own.batch_norm, " is folded as by \"", name(own.folding), "\", not \"",
                                         name(asked.bn_fold), "\"")});
}

/// One that always normalises with its moving statistics has nothing to freeze.
void compare_freeze(const Node& node, const Decisions& asked, std::vector<SettingConflict>& conflicts) {
  const auto& norm = *node.as<layers::BatchNorm>();
  const auto text = [](std::int64_t steps) {
    return steps < 0 ? std::string("never") : concat("after ", steps, " steps");
  };
  if (norm.is_training && norm.freeze_delay != asked.freeze_delay)
    conflicts.push_back({"freeze_bn_delay", concat(node.name(), " freezes ", text(norm.freeze_delay), ", not ",
                                                   text(asked.freeze_delay))});
}

}  // namespace

std::vector<SettingConflict> conflicts_with(const std::vector<FoldedBefore>& batch_norms, const Graph& graph,
                                            const Decisions& decisions, const std::vector<std::string>& inserted) {
  QuantizerComparison comparison(decisions, inserted);
  for (const LayerDecision& layer : decisions.layers) comparison.compare_layer(layer);
  for (const Node* node : graph.nodes()) {
    if (!node->as<FakeQuant>()) continue;
    comparison.compare_scope(*node);
    comparison.compare_other(*node);
  }
  for (const FoldedBefore& before : batch_norms) {
    compare_folding(before, decisions, comparison.conflicts);
    if (decisions.is_training) compare_freeze(graph.at(before.batch_norm), decisions, comparison.conflicts);
  }
  return std::move(comparison.conflicts);
}

}  // namespace miniqat::quantize
