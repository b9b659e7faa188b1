#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quantize/range_kind.h"

namespace miniqat::quantize {

/// Settings of some layers; a setting without a value is as for all layers.
struct LayerBits {
  /// Which layers; see matches_layer.
  std::string pattern = {};
  /// Bits of the layer's weights, and of the quantizers on its output: 2..16 each.
  std::optional<int> weight_bits = {};
  std::optional<int> activation_bits = {};
  /// Bits of residual sums on the layer's output, at least as many; see RewriteOptions::sums_bits.
  std::optional<int> sums_bits = {};
  /// The decay of the moving average of the output's range; [0, 1).
  std::optional<double> ema_decay = {};
  /// Whether the ranges of weights and output are symmetric.
  std::optional<bool> symmetric = {};
  /// Whether the weights' ranges are symmetric; they are where either of the two says so.
  std::optional<bool> symmetric_weights = {};
  /// Whether weights have one range for each output channel.
  std::optional<bool> per_channel = {};
  /// Whether ranges of weights and output are observed or trained.
  std::optional<RangeChoice> ranges = {};

  bool operator==(const LayerBits&) const = default;
};

/// Whether a glob of fnmatch(3), in which `*` also matches '/', fits the layer's name or one of the scopes it is in.
/// "block1", "block*/depthwise" and "*/Conv2D" all match "block1/depthwise/Conv2D". "x_Fold", the layer x with a batch
/// norm folded into it, is also known as "x".
bool matches_layer(const std::string& pattern, std::string_view layer);

/// Whether the glob fits this very name.
bool fits_name(const std::string& pattern, const std::string& name);
/// The names that a pattern may fit to match the layer: its own, that without "_Fold", and the scopes it is in.
std::vector<std::string> names_of_layer(std::string_view layer);
/// "x" of "x_Fold": a layer by the name that it has before and after its batch norm is folded.
std::string unfolded_name(std::string_view layer);
/// A pattern that fits this very layer: its unfolded name, with marks before wildcards.
std::string pattern_of_layer(std::string_view layer);
/// Whether a pattern fits no name but itself.
bool is_literal(std::string_view pattern);

/// Throws Error that starts with `source` and names the pattern. Errors are values out of range, an empty pattern, one
/// that sets nothing, and one that can never win, because the same pattern or one that matches every layer comes before
/// it.
void check_layer_bits(std::span<const LayerBits> list, std::string_view source);

/// Reads an object from patterns to settings; a number alone means both bits:
///
///   {"conv1": {"weight_bits": 8, "activation_bits": 8}, "block*/depthwise": {"per_channel": true}, "*": 4}
///
/// The order of the file is kept. Throws Error in one line that starts with `source` and names pattern and key: for
/// malformed JSON, unknown keys, wrong types, an empty object, and what check_layer_bits refuses.
std::vector<LayerBits> layer_bits_from_json(std::string_view text, const std::string& source);

/// The JSON that layer_bits_from_json reads back to the same list.
nlohmann::ordered_json layer_bits_to_json(std::span<const LayerBits> list);

/// The pieces of literal text between a glob's wildcards, brackets left aside: a name that the glob fits has all of
/// them in it.
std::vector<std::string_view> literal_pieces(std::string_view pattern);

/// Finds the settings of layers in a list, which must outlive it. Each pattern with wildcards is found by one of its
/// literal pieces, the one that the fewest patterns have. The time for a layer grows with the length of its name and
/// with the patterns whose piece is in it, not with the list. The worst case is a list whose patterns share all of
/// their pieces or have none ("a[0]b", "a[1]b", ...; "*[0]", "*[1]", ...): there each pattern is compared with each
/// layer that has the piece.
class LayerBitsIndex {
 public:
  explicit LayerBitsIndex(std::span<const LayerBits> list);

  std::span<const LayerBits> list() const { return list_; }

  /// The first in the list that matches the layer, or null.
  const LayerBits* first_match(std::string_view layer) const;

  /// For each in the list the place of the first of `layers` that it matches; layers.size() for none.
  std::vector<std::size_t> first_layers(std::span<const std::string_view> layers) const;

 private:
  /// In the list, ascending.
  using Indices = std::vector<std::size_t>;

  /// The node of a piece in the tree, made where there is none.
  std::size_t node_of(std::string_view piece);
  /// The indices of all patterns that may fit the name.
  std::vector<const Indices*> candidates(std::string_view name) const;

  std::span<const LayerBits> list_;
  /// The patterns without wildcards.
  std::unordered_map<std::string_view, Indices> literal_;
  /// A tree (trie) of pieces; node 0 is the root, the empty piece. A child by its parent and the byte that leads to it.
  std::unordered_map<std::uint64_t, std::size_t> children_;
  /// For each node, the patterns that are found by its piece.
  std::vector<Indices> patterns_;
};

}  // namespace miniqat::quantize
