#include "quantize/layer_bits_report.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/error.h"
#include "core/quote.h"
#include "core/suggest.h"
#include "quantize/graph_matcher.h"
#include "quantize/insert_fake_quant.h"
#include "quantize/layer_bits.h"

namespace miniqat::quantize {
namespace {

/// Where the settings came from, for users of the program and of RewriteOptions.
constexpr std::string_view kSource = "bits of layers (--bits-config, layer_bits): ";
constexpr std::array<std::string_view, 1> kIdentity = {"Identity"};

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

/// Why the pattern decides about no layer; empty when it does.
std::string why_unused(const LayerBits& bits, const LayerSearch& layers, const RewriteOptions& options) {
  const LayerMatch* lost = nullptr;
  for (const LayerMatch& match : layers.matches) {
    if (first_match(options.layer_bits, match.layer->name()) == &bits) return "";
    if (!lost && matches_layer(bits.pattern, match.layer->name())) lost = &match;
  }
  if (lost)
    return concat("never comes first: ", lost->layer->name(), " goes to \"",
                  first_match(options.layer_bits, lost->layer->name())->pattern, "\"");
  for (const LayerSkip& skip : layers.skips)
    if (matches_layer(bits.pattern, skip.layer->name()))
      return concat("matches no quantized layer: ", skip.layer->name(), " was skipped (", skip.reason, ")");
  const bool is_name = bits.pattern.find_first_of("*?[") == std::string::npos;
  return "matches no layer" + (is_name ? did_you_mean(bits.pattern, names_of(layers)) : "");
}

auto weight_settings(const RewriteOptions& options) {
  return std::tuple(options.weight_bits, options.has_symmetric_weights(), options.per_channel);
}

auto output_settings(const RewriteOptions& options) {
  return std::tuple(options.activation_bits, options.symmetric, options.ema_decay);
}

/// Finds the tensors that several layers share; the first of them has decided.
class Disagreements {
 public:
  explicit Disagreements(const RewriteOptions& options) : options_(options) {}

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
    if (settings(options_.for_layer(first.name())) != settings(options_.for_layer(layer.name())))
      notes.push_back(concat(kSource, tensor->name(), " is quantized once, with the settings of ", first.name(),
                             "; those of ", layer.name(), " differ and do not count for it"));
  }

  const RewriteOptions& options_;
  std::unordered_map<const Node*, const Node*> first_;
};

}  // namespace

std::vector<std::string> notes_on_layer_bits(const LayerSearch& layers, const RewriteOptions& options) {
  if (options.layer_bits.empty()) return {};
  std::vector<std::string> notes;
  for (const LayerBits& bits : options.layer_bits)
    if (const std::string reason = why_unused(bits, layers, options); !reason.empty())
      notes.push_back(concat(kSource, "pattern ", quote(bits.pattern), " is unused: it ", reason));
  Disagreements disagreements(options);
  for (const LayerMatch& match : layers.matches) disagreements.add(match);
  std::ranges::move(disagreements.notes, std::back_inserter(notes));
  return notes;
}

}  // namespace miniqat::quantize
