#include "quantize/rewrite/layer_bits_index.h"

#include <algorithm>
#include <tuple>

namespace miniqat::quantize {
namespace {

/// Behind the bracket expression that begins at `open`. If its end is hard to find (brackets, backslashes or classes in
/// it), behind the last bracket that may end it. Without an end the bracket matches itself.
std::size_t end_of_bracket(std::string_view pattern, std::size_t open) {
  std::size_t first = open + 1;
  if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) ++first;
  const std::size_t end = pattern.find_first_of("[]\\", first);
  if (end != std::string_view::npos && end > first && pattern[end] == ']') return end + 1;
  const std::size_t last = pattern.rfind(']');
  return last == std::string_view::npos || last < open ? open + 1 : last + 1;
}

std::uint64_t child_key(std::size_t parent, char byte) {
  return std::uint64_t{parent} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

std::vector<std::string_view> literal_pieces(std::string_view pattern) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  const auto cut = [&](std::size_t end, std::size_t next) {
    if (end > begin) pieces.push_back(pattern.substr(begin, end - begin));
    begin = next;
  };
  for (std::size_t i = 0; i < pattern.size();) {
    const char c = pattern[i];
    std::size_t next = i + 1;
    if (c == '[') next = end_of_bracket(pattern, i);
    if (c == '*' || c == '?' || c == '[' || c == '\\') cut(i, next);
    // Any character behind a backslash is text.
    i = c == '\\' ? next + 1 : next;
  }
  cut(pattern.size(), pattern.size());
  return pieces;
}

LayerBitsIndex::LayerBitsIndex(std::span<const LayerBits> list) : list_(list), places_(1) {
  std::unordered_map<std::string_view, std::size_t> uses;
  for (const LayerBits& bits : list)
    if (!is_literal(bits.pattern))
      for (const std::string_view piece : literal_pieces(bits.pattern)) ++uses[piece];
  // The rarest, of several the longest.
  const auto is_worse = [&](std::string_view a, std::string_view b) {
    return std::tuple(uses.at(b), a.size()) < std::tuple(uses.at(a), b.size());
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view pattern = list[i].pattern;
    if (is_literal(pattern)) {
      literal_[pattern].push_back(i);
      continue;
    }
    const std::vector<std::string_view> pieces = literal_pieces(pattern);
    const std::size_t node = pieces.empty() ? 0 : node_of(*std::ranges::max_element(pieces, is_worse));
    places_[node].push_back(i);
  }
}

std::size_t LayerBitsIndex::node_of(std::string_view piece) {
  std::size_t node = 0;
  for (const char byte : piece) {
    const auto [child, is_new] = children_.try_emplace(child_key(node, byte), places_.size());
    if (is_new) places_.emplace_back();
    node = child->second;
  }
  return node;
}

std::vector<const LayerBitsIndex::Places*> LayerBitsIndex::candidates(std::string_view name) const {
  std::vector<const Places*> found = {&places_[0]};
  for (std::size_t begin = 0; begin < name.size(); ++begin) {
    std::size_t node = 0;
    for (const char byte : name.substr(begin)) {
      const auto child = children_.find(child_key(node, byte));
      if (child == children_.end()) break;
      node = child->second;
      if (!places_[node].empty()) found.push_back(&places_[node]);
    }
  }
  // A piece may be in the name several times.
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (const auto literal = literal_.find(name); literal != literal_.end()) found.push_back(&literal->second);
  return found;
}

const LayerBits* LayerBitsIndex::first_match(std::string_view layer) const {
  std::size_t first = list_.size();
  for (const std::string& name : names_of_layer(layer))
    for (const Places* places : candidates(name))
      for (const std::size_t i : *places) {
        if (i >= first) break;
        if (fits_name(list_[i].pattern, name)) first = i;
      }
  return first == list_.size() ? nullptr : &list_[first];
}

std::vector<std::size_t> LayerBitsIndex::first_layers(std::span<const std::string_view> layers) const {
  std::vector<std::size_t> first(list_.size(), layers.size());
  for (std::size_t k = 0; k < layers.size(); ++k)
    for (const std::string& name : names_of_layer(layers[k]))
      for (const Places* places : candidates(name))
        for (const std::size_t i : *places)
          if (first[i] == layers.size() && fits_name(list_[i].pattern, name)) first[i] = k;
  return first;
}

}  // namespace miniqat::quantize
