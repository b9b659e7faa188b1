#include "quantize/rewrite/layer_bits_notes.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/graph_matcher.h"
#include "quantize/rewrite/layer_bits.h"
#include "quantize/rewrite/layer_bits_index.h"

namespace miniqat::quantize {
namespace {

/// The source of the settings: RewriteOptions::layer_bits, which in training::RewriteSettings come from a file.
constexpr std::string_view kSource = "bits of layers (`bits_config`): ";

/// The names that patterns may have meant: all layers and the scopes they are in.
std::vector<std::string> names_of(const std::vector<LayerSkip>& skips, const Verdicts& verdicts) {
  std::set<std::string> names;
  const auto add = [&](const Node& layer) {
    for (std::string name = layer.name(); !name.empty(); name = scope_of(name)) names.insert(name);
  };
  for (const LayerVerdict& layer : verdicts.layers) add(*layer.match->layer);
  for (const LayerSkip& skip : skips) add(*skip.layer);
  return {names.begin(), names.end()};
}

/// Suggestions take time for each name that a pattern may have meant. A user with this many wrong patterns needs no
/// more.
constexpr int kMostSuggestions = 50;

/// Says of each pattern whether it decides about a layer.
class PatternUse {
 public:
  PatternUse(const std::vector<LayerSkip>& skips, const Verdicts& verdicts, const LayerBitsIndex& index)
      : index_(index), names_(names_of(skips, verdicts)) {
    for (const LayerVerdict& layer : verdicts.layers) {
      matched_.push_back(layer.match->layer->name());
      winners_.insert(layer.settings.bits);
    }
    for (const LayerSkip& skip : skips) {
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
  explicit Disagreements(const RewriteOptions& options) : options_(options) {}

  void add(const LayerVerdict& layer) {
    if (layer.weights.quantizer) compare(source_through(layer.match->weights, kIdentity).node, layer, weight_settings);
    for (const TensorVerdict* tensor : layer.outputs())
      if (tensor->quantizer) compare(tensor->producer, layer, output_settings);
  }

  std::vector<std::string> notes;

 private:
  void compare(const Node* tensor, const LayerVerdict& layer, const auto& settings) {
    const LayerVerdict& first = *first_.try_emplace(tensor, &layer).first->second;
    // As the patterns have it: the ends of a network have settings of their own, which are no pattern's.
    const auto by_pattern = [&](const LayerVerdict& one) {
      return settings(LayerSettings(options_, one.settings.bits));
    };
    if (by_pattern(first) != by_pattern(layer))
      notes.push_back(concat(kSource, tensor->name(), " is shared: the settings of ", first.match->layer->name(),
                             " apply, those of ", layer.match->layer->name(), " are ignored"));
  }

  const RewriteOptions& options_;
  std::unordered_map<const Node*, const LayerVerdict*> first_;
};

}  // namespace

std::vector<std::string> notes_on_layer_bits(const std::vector<LayerSkip>& skips, const Verdicts& verdicts,
                                             const RewriteOptions& options) {
  if (options.layer_bits.empty()) return {};
  std::vector<std::string> notes;
  const LayerBitsIndex index(options.layer_bits);
  PatternUse use(skips, verdicts, index);
  for (std::size_t i = 0; i < options.layer_bits.size(); ++i) {
    const LayerBits& bits = options.layer_bits[i];
    if (const std::string reason = use.why_unused(bits, i); !reason.empty())
      notes.push_back(concat(kSource, "pattern ", quote(bits.pattern), " is unused: it ", reason));
  }
  Disagreements disagreements(options);
  for (const LayerVerdict& layer : verdicts.layers) disagreements.add(layer);
  std::ranges::move(disagreements.notes, std::back_inserter(notes));
  return notes;
}

}  // namespace miniqat::quantize
