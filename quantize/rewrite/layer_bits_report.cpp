#include "quantize/rewrite/layer_bits_report.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/quote.h"
#include "core/suggest.h"
#include "quantize/graph_matcher.h"
#include "quantize/rewrite/insert_fake_quant.h"
#include "quantize/rewrite/layer_bits.h"
#include "quantize/rewrite/layer_bits_index.h"

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

/// Says of each pattern whether it decides about a layer.
class PatternUse {
 public:
  PatternUse(const LayerSearch& layers, const LayerBitsIndex& index) : index_(index), names_(names_of(layers)) {
    for (const LayerMatch& match : layers.matches) {
      matched_.push_back(match.layer->name());
      winners_.insert(index.first_match(match.layer->name()));
    }
    for (const LayerSkip& skip : layers.skips) {
      skipped_.push_back(skip.layer->name());
      reasons_.push_back(skip.reason);
    }
    first_matched_ = index.first_layers(matched_);
    first_skipped_ = index.first_layers(skipped_);
  }

  /// Why the pattern at `place` decides about no layer; empty when it does.
  std::string why_unused(const LayerBits& bits, std::size_t place) {
    if (winners_.contains(&bits)) return "";
    if (const std::size_t lost = first_matched_[place]; lost < matched_.size())
      return concat("never comes first: ", matched_[lost], " goes to ",
                    quote(index_.first_match(matched_[lost])->pattern));
    if (const std::size_t skipped = first_skipped_[place]; skipped < skipped_.size())
      return concat("matches no quantized layer: ", skipped_[skipped], " was skipped (", reasons_[skipped], ")");
    const bool suggests = is_literal(bits.pattern) && suggestions_++ < kMostSuggestions;
    return "matches no layer" + (suggests ? did_you_mean(bits.pattern, names_) : "");
  }

 private:
  const LayerBitsIndex& index_;
  const std::vector<std::string> names_;
  /// The names of the layers, and why some were skipped.
  std::vector<std::string_view> matched_, skipped_, reasons_;
  /// By the place of a pattern, the places of the first layers that it matches among these.
  std::vector<std::size_t> first_matched_, first_skipped_;
  std::unordered_set<const LayerBits*> winners_;
  int suggestions_ = 0;
};

auto weight_settings(const RewriteOptions& options) {
  return std::tuple(options.weight_bits, options.has_symmetric_weights(), options.per_channel, options.weight_range());
}

auto output_settings(const RewriteOptions& options) {
  return std::tuple(options.activation_bits, options.sums_bits, options.symmetric, options.ema_decay,
                    options.activation_range());
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
      notes.push_back(concat(kSource, tensor->name(), " is shared: the settings of ", first.name(), " apply, those of ",
                             layer.name(), " are ignored"));
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
  for (std::size_t i = 0; i < options.layer_bits.size(); ++i) {
    const LayerBits& bits = options.layer_bits[i];
    if (const std::string reason = use.why_unused(bits, i); !reason.empty())
      notes.push_back(concat(kSource, "pattern ", quote(bits.pattern), " is unused: it ", reason));
  }
  Disagreements disagreements(options, index);
  for (const LayerMatch& match : layers.matches) disagreements.add(match);
  std::ranges::move(disagreements.notes, std::back_inserter(notes));
  return notes;
}

}  // namespace miniqat::quantize
