#include "quantize/rewrite/layer_bits_report.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/quote.h"
#include "core/suggest.h"
#include "quantize/rewrite/graph_matcher.h"
#include "quantize/rewrite/insert_fake_quant.h"
#include "quantize/rewrite/layer_bits.h"

namespace miniqat::quantize {
namespace {

/// Where the settings came from, for users of the program and of RewriteOptions.
constexpr std::string_view kSource = "bits of layers (--bits-config): ";

/// The names that patterns may have meant: all layers and the scopes they are in.
std::vector<std::string> names_of(const LayerSearch& layers) {
  std::set<std::string> names;
  const auto add = [&](const Node& layer) {
    for (std::string name = layer.name(); !name.empty(); name = scope_of(name)) names.insert(name);
  };
  for (const LayerMatch& match : layers.matches) add(*match.layer);
  for (const LayerSkip& skip : layers.skips) add(*skip.layer);
  return {names.begin(), names.end()};
}

/// Suggestions take time for each name that a pattern may have meant: whoever has so many wrong ones knows by then.
constexpr int kMostSuggestions = 50;

/// Layers by all names that a pattern may fit, the first of several.
class LayerNames {
 public:
  void add(const Node& layer) {
    const int place = static_cast<int>(layers_.size());
    layers_.push_back(&layer);
    for (const std::string& name : names_of_layer(layer.name())) {
      first_.try_emplace(name, place);
      backwards_.try_emplace({name.rbegin(), name.rend()}, place);
    }
  }

  /// The first layer that the pattern matches, or null.
  const Node* first_match(const std::string& pattern) const {
    if (is_literal(pattern)) {
      const auto found = first_.find(pattern);
      return found == first_.end() ? nullptr : layers_[found->second];
    }
    const std::string_view prefix = literal_prefix(pattern);
    const std::string_view suffix = literal_suffix(pattern);
    const int place = prefix.empty() ? first_with(backwards_, {suffix.rbegin(), suffix.rend()}, pattern)
                                     : first_with(first_, std::string(prefix), pattern);
    return place == kNone ? nullptr : layers_[place];
  }

 private:
  using Places = std::map<std::string, int>;
  static constexpr int kNone = std::numeric_limits<int>::max();

  int first_with(const Places& places, const std::string& start, const std::string& pattern) const {
    int first = kNone;
    for (auto it = places.lower_bound(start); it != places.end() && it->first.starts_with(start); ++it)
      if (it->second < first && matches_layer(pattern, layers_[it->second]->name())) first = it->second;
    return first;
  }

  std::vector<const Node*> layers_;
  Places first_;
  /// By the names from behind, so that those with the same end stand together.
  Places backwards_;
};

/// Says of each pattern whether it decides about a layer.
class PatternUse {
 public:
  PatternUse(const LayerSearch& layers, const LayerBitsIndex& index) : index_(index), names_(names_of(layers)) {
    for (const LayerMatch& match : layers.matches) {
      matched_.add(*match.layer);
      winners_.insert(index.first_match(match.layer->name()));
    }
    for (const LayerSkip& skip : layers.skips) {
      skipped_.add(*skip.layer);
      reasons_.emplace(skip.layer, &skip.reason);
    }
  }

  /// Why the pattern decides about no layer; empty when it does.
  std::string why_unused(const LayerBits& bits) {
    if (winners_.contains(&bits)) return "";
    if (const Node* lost = matched_.first_match(bits.pattern))
      return concat("never comes first: ", lost->name(), " goes to ", quote(index_.first_match(lost->name())->pattern));
    if (const Node* skipped = skipped_.first_match(bits.pattern))
      return concat("matches no quantized layer: ", skipped->name(), " was skipped (", *reasons_.at(skipped), ")");
    const bool suggests = is_literal(bits.pattern) && suggestions_++ < kMostSuggestions;
    return "matches no layer" + (suggests ? did_you_mean(bits.pattern, names_) : "");
  }

 private:
  const LayerBitsIndex& index_;
  const std::vector<std::string> names_;
  LayerNames matched_;
  LayerNames skipped_;
  std::unordered_set<const LayerBits*> winners_;
  std::unordered_map<const Node*, const std::string*> reasons_;
  int suggestions_ = 0;
};

auto weight_settings(const RewriteOptions& options) {
  return std::tuple(options.weight_bits, options.has_symmetric_weights(), options.per_channel);
}

auto output_settings(const RewriteOptions& options) {
  return std::tuple(options.activation_bits, options.symmetric, options.ema_decay);
}

/// Finds the tensors that several layers share; the first of them has decided.
class Disagreements {
 public:
  Disagreements(const RewriteOptions& options, const LayerBitsIndex& index) : options_(options), index_(index) {}

  void add(const LayerMatch& match) {
    compare(source_through(match.weights, kIdentity).node, *match.layer, weight_settings);
    if (match.bypass) compare(match.before_bypass(), *match.layer, output_settings);
    compare(match.last(), *match.layer, output_settings);
    if (match.post_activation_bypass) compare(match.post_activation_bypass, *match.layer, output_settings);
  }

  std::vector<std::string> notes;

 private:
  void compare(const Node* tensor, const Node& layer, const auto& settings) {
    if (!quantizer_after(tensor->output())) return;
    const Node& first = *first_.try_emplace(tensor, &layer).first->second;
    if (settings(options_of(first)) != settings(options_of(layer)))
      notes.push_back(concat(kSource, tensor->name(), " is quantized once, with the settings of ", first.name(),
                             "; those of ", layer.name(), " differ and do not count for it"));
  }

  RewriteOptions options_of(const Node& layer) const { return options_.with(index_.first_match(layer.name())); }

  const RewriteOptions& options_;
  const LayerBitsIndex& index_;
  std::unordered_map<const Node*, const Node*> first_;
};

}  // namespace

std::vector<std::string> notes_on_layer_bits(const LayerSearch& layers, const RewriteOptions& options) {
  if (options.layer_bits.empty()) return {};
  std::vector<std::string> notes;
  const LayerBitsIndex index(options.layer_bits);
  PatternUse use(layers, index);
  for (const LayerBits& bits : options.layer_bits)
    if (const std::string reason = use.why_unused(bits); !reason.empty())
      notes.push_back(concat(kSource, "pattern ", quote(bits.pattern), " is unused: it ", reason));
  Disagreements disagreements(options, index);
  for (const LayerMatch& match : layers.matches) disagreements.add(match);
  std::ranges::move(disagreements.notes, std::back_inserter(notes));
  return notes;
}

}  // namespace miniqat::quantize
