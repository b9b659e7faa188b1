#include "quantize/rewrite/remarks.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"

namespace miniqat::quantize {
namespace {

/// The source of the settings: RewriteOptions::layer_bits, which in training::RewriteSettings come from a file.
constexpr std::string_view kSource = "bits of layers (`bits_config`): ";

/// The names that patterns may have meant: all layers and the scopes they are in.
std::vector<std::string> names_of_layers(const Decisions& decisions) {
  std::set<std::string> names;
  const auto add = [&](const Node& layer) {
    for (std::string name = layer.name(); !name.empty(); name = scope_of(name)) names.insert(name);
  };
  for (const LayerDecision& layer : decisions.layers) add(*layer.match->layer);
  for (const LayerSkip& skip : decisions.search.skips) add(*skip.layer);
  return {names.begin(), names.end()};
}

/// Why a pattern decides about no layer.
std::string why_unused(const PatternDecision& pattern) {
  if (const LayerDecision* lost = pattern.layer)
    return concat("never comes first: ", lost->match->layer->name(), " goes to ", quote(lost->settings.pattern));
  if (const LayerSkip* skip = pattern.skip)
    return concat("matches no quantized layer: ", skip->layer->name(), " was skipped (", skip->reason, ")");
  return "matches no layer";
}

auto weight_settings(const LayerSettings& settings) {
  const FakeQuantAttributes& asked = settings.weights.attributes;
  return std::tuple(asked.bits, asked.symmetric, asked.per_channel, asked.range);
}

auto output_settings(const LayerSettings& settings) {
  const FakeQuantAttributes& asked = settings.output.attributes;
  return std::tuple(asked.bits, settings.sums_bits, asked.symmetric, asked.ema_decay, asked.range);
}

/// Finds the tensors that several layers share; the first of them has decided.
class Disagreements {
 public:
  void add(const LayerDecision& layer) {
    if (layer.weights.row) compare(source_through(layer.match->weights, kIdentity).node, layer, weight_settings);
    for (const TensorDecision& tensor : layer.outputs)
      if (tensor.row) compare(tensor.producer, layer, output_settings);
  }

  std::vector<std::string> notes;

 private:
  void compare(const Node* tensor, const LayerDecision& layer, const auto& settings) {
    const LayerDecision& first = *first_.try_emplace(tensor, &layer).first->second;
    if (settings(first.by_pattern) != settings(layer.by_pattern))
      notes.push_back(concat(kSource, tensor->name(), " is shared: the settings of ", first.match->layer->name(),
                             " apply, those of ", layer.match->layer->name(), " are ignored"));
  }

  std::unordered_map<const Node*, const LayerDecision*> first_;
};

/// What there is among the outputs of the layers that a pattern decides about.
struct PatternOutputs {
  bool sums = false;
  /// Sums that are wider than what layers read, or would be without the pattern.
  bool wide_sums = false;
  bool averages = false;
};

std::unordered_map<std::string_view, PatternOutputs> outputs_by_pattern(const Decisions& decisions) {
  const std::int64_t usual_sums = decisions.others.sums_bits.value_or(0);
  std::unordered_map<std::string_view, PatternOutputs> outputs;
  for (const LayerDecision& layer : decisions.layers) {
    PatternOutputs& found = outputs[layer.settings.pattern];
    for (const TensorDecision& output : layer.outputs) {
      found.sums |= decisions.sums.keep(*output.producer);
      found.wide_sums |= layer.settings.widens_sums || usual_sums > layer.settings.output.attributes.bits;
      found.averages |= traits_of(output.asked.attributes.range).averages;
    }
  }
  return outputs;
}

/// The settings of a pattern that change nothing.
std::vector<std::string> idle_settings(const PatternDecision& pattern, const PatternOutputs& outputs) {
  std::vector<std::string> idle;
  if (pattern.has_sums_bits && !outputs.sums)
    idle.emplace_back("sums_bits has no effect: no output of its layers is part of a residual sum");
  else if (pattern.has_sums_bits && !outputs.wide_sums)
    idle.emplace_back("sums_bits has no effect: the outputs of its layers have no fewer bits");
  if (pattern.has_ema_decay && !outputs.averages)
    idle.emplace_back("ema_decay has no effect: no range of its layers' outputs is an average");
  return idle;
}

/// Suggestions take time for each name that a pattern may have meant. A user with this many wrong patterns needs no
/// more.
constexpr int kMostSuggestions = 50;

/// Patterns without effect: a text for every pattern that decides about no layer, with the reason, for every setting
/// that changes nothing, and for every tensor that several layers would have quantized differently.
std::vector<std::string> notes_on_layer_bits(const Decisions& decisions) {
  if (decisions.patterns.empty()) return {};
  std::vector<std::string> notes;
  const std::vector<std::string> names = names_of_layers(decisions);
  const auto outputs = outputs_by_pattern(decisions);
  int suggestions = 0;
  for (const PatternDecision& pattern : decisions.patterns) {
    const std::string text = concat(kSource, "pattern ", quote(pattern.pattern));
    if (pattern.decides) {
      for (const std::string& idle : idle_settings(pattern, outputs.at(pattern.pattern)))
        notes.push_back(concat(text, ": ", idle));
      continue;
    }
    const bool suggests = pattern.matches_none() && is_literal(pattern.pattern) && suggestions++ < kMostSuggestions;
    notes.push_back(
        concat(text, " is unused: it ", why_unused(pattern), suggests ? did_you_mean(pattern.pattern, names) : ""));
  }
  Disagreements disagreements;
  for (const LayerDecision& layer : decisions.layers) disagreements.add(layer);
  std::ranges::move(disagreements.notes, std::back_inserter(notes));
  return notes;
}

/// Options without effect on batch norms.
std::vector<std::string> remarks_on_folding(const Decisions& decisions,
                                            const std::vector<BatchNormReport>& batch_norms) {
  std::vector<std::string> remarks;
  const bool is_training = decisions.is_training;
  if (decisions.freeze_delay >= 0 && is_training && std::ranges::none_of(batch_norms, &BatchNormReport::freezes)) {
    const bool trains = std::ranges::any_of(batch_norms, &BatchNormReport::trains);
    remarks.emplace_back(trains ? "`freeze_bn_delay` has no effect on batch norms that were folded before"
                                : "`freeze_bn_delay` has no effect: no batch norm trains here");
  }
  const BnFold asked = decisions.bn_fold;
  const bool folds_so = std::ranges::count(batch_norms, std::optional(asked), &BatchNormReport::folding) > 0;
  if (asked == BnFold::kSingle && is_training && !folds_so)
    remarks.emplace_back("`bn_fold` single has no effect: there is no batch norm to fold for training");
  if (asked == BnFold::kLate && !folds_so)
    remarks.emplace_back("`bn_fold` late has no effect: there is no batch norm to fold");
  return remarks;
}

std::string remark_on_sums(const Decisions& decisions) {
  const LayerSettings& usual = decisions.others;
  if (!usual.sums_bits) return "";
  if (decisions.sums.empty()) return "`sums_bits` has no effect: there is no residual sum";
  if (usual.widens_sums || !decisions.patterns.empty()) return "";
  return concat("`sums_bits` has no effect: all activations have ", *usual.sums_bits, " bits");
}

}  // namespace

std::vector<std::string> remarks_on(const Decisions& decisions, const std::vector<BatchNormReport>& batch_norms) {
  std::vector<std::string> remarks = remarks_on_folding(decisions, batch_norms);
  if (decisions.misses_pools) remarks.emplace_back("`float_pools` has no effect: there is no AvgPool, Mean or Concat");
  if (std::string remark = remark_on_sums(decisions); !remark.empty()) remarks.push_back(std::move(remark));
  if (decisions.misses_inputs) remarks.emplace_back("`input_bits` has no effect without `quantize_input`");
  if (!decisions.missed_scope.empty() && !decisions.search.skips.empty()) remarks.push_back(decisions.missed_scope);
  for (std::string& note : notes_on_layer_bits(decisions)) remarks.push_back(std::move(note));
  return remarks;
}

std::vector<std::string> warnings_about(const Decisions& decisions, const std::vector<BatchNormReport>& batch_norms) {
  std::vector<std::string> warnings;
  const std::int64_t freezes = decisions.freeze_delay, quantizes = decisions.others.output.attributes.delay;
  if (decisions.is_training && freezes >= 0 && freezes < quantizes)
    warnings.push_back(
        concat("batch norm freezes at step ", freezes, ", before quantization begins at step ", quantizes,
               ": its statistics will be those of the float network, and never follow the quantized one"));
  const auto fresh = std::ranges::count(batch_norms, true, &BatchNormReport::fresh_statistics);
  if (fresh > 0)
    warnings.push_back(concat(counted(fresh, "batch norm"), " in primitive ops had no moving statistics; ",
                              decisions.is_training
                                  ? "train a few hundred steps before you evaluate"
                                  : "evaluation needs those of a training run of the rewritten graph"));
  return warnings;
}

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
    const LayerSettings& asked = of_input(quantizer) ? decisions_.inputs : decisions_.without_layer(producer);
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
    return steps < 0 ? std::string("never") : concat("after ", counted(steps, "step"));
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
