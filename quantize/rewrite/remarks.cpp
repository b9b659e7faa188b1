#include "quantize/rewrite/remarks.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/graph_matcher.h"

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

/// Suggestions take time for each name that a pattern may have meant. A user with this many wrong patterns needs no
/// more.
constexpr int kMostSuggestions = 50;

/// Says of each pattern whether it decides about a layer.
class PatternUse {
 public:
  PatternUse(const Decisions& decisions, const LayerBitsIndex& index)
      : index_(index), decisions_(decisions), names_(names_of_layers(decisions)) {
    std::vector<std::string_view> layers;
    for (const LayerDecision& layer : decisions.layers) {
      layers.push_back(layer.match->layer->name());
      winners_.insert(layer.settings.bits);
    }
    for (const LayerSkip& skip : decisions.search.skips) layers.push_back(skip.layer->name());
    first_layers_ = index.first_layers(layers);
  }

  /// Why the pattern at `place` decides about no layer; empty when it does.
  std::string why_unused(const LayerBits& bits, std::size_t place) {
    if (winners_.contains(&bits)) return "";
    const std::size_t first = first_layers_[place], matched = decisions_.layers.size();
    if (first < matched) {
      const std::string& lost = decisions_.layers[first].match->layer->name();
      return concat("never comes first: ", lost, " goes to ", quote(index_.first_match(lost)->pattern));
    }
    if (first - matched < decisions_.search.skips.size()) {
      const LayerSkip& skip = decisions_.search.skips[first - matched];
      return concat("matches no quantized layer: ", skip.layer->name(), " was skipped (", skip.reason, ")");
    }
    const bool suggests = is_literal(bits.pattern) && suggestions_++ < kMostSuggestions;
    return "matches no layer" + (suggests ? did_you_mean(bits.pattern, names_) : "");
  }

 private:
  const LayerBitsIndex& index_;
  const Decisions& decisions_;
  const std::vector<std::string> names_;
  /// By the place of a pattern, that of the first layer that it matches: the layers that were matched, then others.
  std::vector<std::size_t> first_layers_;
  std::unordered_set<const LayerBits*> winners_;
  int suggestions_ = 0;
};

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
  explicit Disagreements(const LayerSettingsIndex& settings) : settings_(settings) {}

  void add(const LayerDecision& layer) {
    if (layer.weights.row) compare(source_through(layer.match->weights, kIdentity).node, layer, weight_settings);
    for (const TensorDecision& tensor : layer.outputs)
      if (tensor.row) compare(tensor.producer, layer, output_settings);
  }

  std::vector<std::string> notes;

 private:
  void compare(const Node* tensor, const LayerDecision& layer, const auto& settings) {
    const LayerDecision& first = *first_.try_emplace(tensor, &layer).first->second;
    const auto own = [&](const LayerDecision& one) { return settings(settings_.by_pattern(one.settings.bits)); };
    if (own(first) != own(layer))
      notes.push_back(concat(kSource, tensor->name(), " is shared: the settings of ", first.match->layer->name(),
                             " apply, those of ", layer.match->layer->name(), " are ignored"));
  }

  const LayerSettingsIndex& settings_;
  std::unordered_map<const Node*, const LayerDecision*> first_;
};

/// Patterns without effect: a text for every pattern that decides about no layer, with the reason, and for every tensor
/// that several layers would have quantized differently.
std::vector<std::string> notes_on_layer_bits(const LayerSettingsIndex& settings, const Decisions& decisions) {
  const std::span<const LayerBits> list = settings.patterns().list();
  if (list.empty()) return {};
  std::vector<std::string> notes;
  PatternUse use(decisions, settings.patterns());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const std::string reason = use.why_unused(list[i], i); !reason.empty())
      notes.push_back(concat(kSource, "pattern ", quote(list[i].pattern), " is unused: it ", reason));
  Disagreements disagreements(settings);
  for (const LayerDecision& layer : decisions.layers) disagreements.add(layer);
  std::ranges::move(disagreements.notes, std::back_inserter(notes));
  return notes;
}

/// Options without effect on batch norms.
std::vector<std::string> remarks_on_folding(const RewriteOptions& options,
                                            const std::vector<BatchNormReport>& batch_norms, bool is_training) {
  std::vector<std::string> remarks;
  if (options.freeze_bn_delay && is_training && std::ranges::none_of(batch_norms, &BatchNormReport::freezes)) {
    const bool trains = std::ranges::any_of(batch_norms, &BatchNormReport::trains);
    remarks.emplace_back(trains ? "`freeze_bn_delay` has no effect on batch norms that were folded before"
                                : "`freeze_bn_delay` has no effect: no batch norm trains here");
  }
  const bool folds_so = std::ranges::count(batch_norms, std::optional(options.bn_fold), &BatchNormReport::folding) > 0;
  if (options.bn_fold == BnFold::kSingle && is_training && !folds_so)
    remarks.emplace_back("`bn_fold` single has no effect: there is no batch norm to fold for training");
  if (options.bn_fold == BnFold::kLate && !folds_so)
    remarks.emplace_back("`bn_fold` late has no effect: there is no batch norm to fold");
  return remarks;
}

std::string remark_on_sums(const RewriteOptions& options, const Decisions& decisions) {
  if (!options.sums_bits) return "";
  if (decisions.sums.empty()) return "`sums_bits` has no effect: there is no residual sum";
  if (options.widens_sums() || !options.layer_bits.empty()) return "";
  return concat("`sums_bits` has no effect: all activations have ", *options.sums_bits, " bits");
}

}  // namespace

std::vector<std::string> remarks_on(const RewriteOptions& options, const LayerSettingsIndex& settings,
                                    const std::vector<BatchNormReport>& batch_norms, const Decisions& decisions) {
  std::vector<std::string> remarks = remarks_on_folding(options, batch_norms, decisions.is_training);
  if (options.float_pools && !decisions.leaves_pools)
    remarks.emplace_back("`float_pools` has no effect: there is no AvgPool, Mean or Concat");
  if (std::string remark = remark_on_sums(options, decisions); !remark.empty()) remarks.push_back(std::move(remark));
  if (!decisions.missed_scope.empty() && !decisions.search.skips.empty()) remarks.push_back(decisions.missed_scope);
  for (std::string& note : notes_on_layer_bits(settings, decisions)) remarks.push_back(std::move(note));
  return remarks;
}

std::vector<std::string> warnings_about(const RewriteOptions& options, const std::vector<BatchNormReport>& batch_norms,
                                        bool is_training) {
  std::vector<std::string> warnings;
  if (is_training && options.freeze_bn_delay && *options.freeze_bn_delay < options.quant_delay)
    warnings.push_back(
        concat("batch norm freezes at step ", *options.freeze_bn_delay, ", before quantization begins at step ",
               options.quant_delay,
               ": its statistics will be those of the float network, and never follow the quantized one"));
  const auto fresh = std::ranges::count(batch_norms, true, &BatchNormReport::fresh_statistics);
  if (fresh > 0)
    warnings.push_back(concat(fresh, fresh == 1 ? " batch norm" : " batch norms",
                              " in primitive ops had no moving statistics; ",
                              is_training ? "train a few hundred steps before you evaluate"
                                          : "evaluation needs those of a training run of the rewritten graph"));
  return warnings;
}

}  // namespace miniqat::quantize
