#pragma once

#include <unordered_set>
#include <vector>

#include "quantize/fake_quant.h"
#include "quantize/rewrite/layer_bits.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/rewrite_options.h"

namespace miniqat::quantize {

/// The attributes that a rewrite gives a quantizer while it trains, and the settings that decided about them, for
/// conflicts: names as in RewriteOptions, "bits_config" for layer_bits.
struct QuantizerSettings {
  FakeQuantAttributes attributes;
  const char* of_bits = "";
  const char* of_symmetry = "";
  const char* of_range = "";
  const char* of_channels = "";
  const char* of_decay = "";
};

/// The place of a layer; see LayerSettingsIndex.
struct LayerPlace {
  bool is_first = false;
  bool is_last = false;
};

/// The settings of one layer: those of RewriteOptions for single quantizers, changed by LayerBits.
class LayerSettings {
 public:
  /// `bits` (null for none) comes before the options, but for logits_bits and ends_bits where `place` has them: who
  /// gives these beside settings by layer means the ends.
  explicit LayerSettings(const RewriteOptions& options, const LayerBits* bits = nullptr, LayerPlace place = {});

  /// per_channel as asked; not all weights can have it.
  QuantizerSettings weights;
  /// The settings of the layer's output, and of tensors that keep sums_bits; without sums_bits both are the same.
  QuantizerSettings output, sums;
  /// Whether residual sums have more bits than activations.
  bool widens_sums = false;
  /// The bits that are asked for residual sums, if any are.
  std::optional<std::int64_t> sums_bits;
  /// The pattern of the LayerBits that changed them; "" for none.
  std::string pattern;

 private:
  void ask_of_weights(const RewriteOptions& options, const LayerBits& layer, LayerPlace place);
  void ask_of_output(const RewriteOptions& options, const LayerBits& layer, LayerPlace place);
};

/// Nodes of a topological order whose value some layer has had a part in. Layers that read no such node are not among
/// them.
std::unordered_set<const Node*> nodes_behind_layers(const std::vector<Node*>& order);

/// Finds the settings of each quantizer of a graph. A layer is a first one if its input comes from no other layer, and
/// a last one if no other layer reads its output. Such layers use ends_bits and logits_bits, which come before
/// sums_bits for the output of a last layer, and before layer_bits. The first of layer_bits that matches decides about
/// all else.
class LayerSettingsIndex {
 public:
  /// `options` must stay. Looks at the graph once, here.
  LayerSettingsIndex(const Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options);

  LayerSettings of(const LayerMatch& match, const LayerBits* bits) const;
  /// The settings of layers that a pattern decides about, or none (null), and that are no ends of the network.
  LayerSettings by_pattern(const LayerBits* bits) const { return LayerSettings(options_, bits); }
  /// The settings of quantizers behind layers that belong to none.
  LayerSettings behind_layers() const { return LayerSettings(options_); }
  /// The settings of quantizers before the first layers: of what preprocessing in the network makes of its input. A
  /// picture's bytes have 8 bits without a quantizer; so has what is made of them, or activation_bits if these are more
  /// or quantize_input asks for them.
  LayerSettings before_layers() const;
  /// The settings of the quantizers that quantize_input asks for.
  LayerSettings of_inputs() const;
  const LayerBitsIndex& patterns() const { return bits_; }

 private:
  const RewriteOptions& options_;
  const LayerBitsIndex bits_;
  std::unordered_set<const Node*> first_;
  std::unordered_set<const Node*> last_;
};

}  // namespace miniqat::quantize
