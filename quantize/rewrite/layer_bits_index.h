#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quantize/rewrite/layer_bits.h"

namespace miniqat::quantize {

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

  /// The first in the list that matches the layer, or null.
  const LayerBits* first_match(std::string_view layer) const;

  /// For each in the list the place of the first of `layers` that it matches; layers.size() for none.
  std::vector<std::size_t> first_layers(std::span<const std::string_view> layers) const;

 private:
  /// In the list, ascending.
  using Places = std::vector<std::size_t>;

  /// The node of a piece in the tree, made where there is none.
  std::size_t node_of(std::string_view piece);
  /// The places of all patterns that may fit the name.
  std::vector<const Places*> candidates(std::string_view name) const;

  std::span<const LayerBits> list_;
  /// The patterns without wildcards.
  std::unordered_map<std::string_view, Places> literal_;
  /// A tree (trie) of pieces; node 0 is the root, the empty piece. A child by its parent and the byte that leads to it.
  std::unordered_map<std::uint64_t, std::size_t> children_;
  /// By node, the patterns that are found by its piece.
  std::vector<Places> places_;
};

}  // namespace miniqat::quantize
