#include "quantize/rewrite/layer_bits.h"

#include <fnmatch.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "core/graph/graph.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::quantize {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kFolded = "_Fold";
/// The characters with a meaning of their own in a glob.
constexpr std::string_view kSpecial = "*?[\\";
constexpr int kFewestBits = 2;
constexpr int kMostBits = 16;

/// Calls visit(name, member) for every setting of a LayerBits, const or not.
template <class Bits, class Visitor>
void visit_settings(Bits& bits, Visitor&& visit) {
  visit("weight_bits", bits.weight_bits);
  visit("activation_bits", bits.activation_bits);
  visit("ema_decay", bits.ema_decay);
  visit("symmetric", bits.symmetric);
  visit("symmetric_weights", bits.symmetric_weights);
  visit("per_channel", bits.per_channel);
  visit("ranges", bits.ranges);
  visit("sums_bits", bits.sums_bits);
}

template <class... Parts>
[[noreturn]] void refuse(std::string_view source, const std::string& pattern, const Parts&... parts) {
  fail(source, ": pattern ", quote(pattern), ": ", parts...);
}

bool are_bits(double value) { return value >= kFewestBits && value <= kMostBits; }
bool is_decay(double value) { return value >= 0 && value < 1; }

/// What may stand there, when `json` may not.
std::string_view read(const Json& json, std::optional<int>& bits) {
  if (!json.is_number_integer() || !are_bits(json.get<double>())) return "a whole number from 2 to 16";
  bits = json.get<int>();
  return {};
}

std::string_view read(const Json& json, std::optional<double>& decay) {
  if (!json.is_number() || !is_decay(json.get<double>())) return "a number in [0, 1)";
  decay = json.get<double>();
  return {};
}

std::string_view read(const Json& json, std::optional<bool>& flag) {
  if (!json.is_boolean()) return "true or false";
  flag = json.get<bool>();
  return {};
}

std::string_view read(const Json& json, std::optional<RangeChoice>& ranges) {
  const std::span<const std::string_view> names = quantize::names_of(RangeChoice());
  const auto found = json.is_string() ? std::ranges::find(names, json.get<std::string>()) : names.end();
  if (found == names.end()) {
    static const std::string kWanted = [&] {
      std::vector<std::string> quoted;
      for (const std::string_view name : names) quoted.push_back(quote(name));
      return alternatives(quoted);
    }();
    return kWanted;
  }
  ranges = static_cast<RangeChoice>(found - names.begin());
  return {};
}

template <class T>
const T& written(const T& setting) {
  return setting;
}
std::string_view written(RangeChoice ranges) { return quantize::names_of(ranges)[static_cast<std::size_t>(ranges)]; }

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  LayerBits any;
  visit_settings(any, [&](const char* name, const auto&) { names.push_back(name); });
  return names;
}

void read_settings(const Json& json, LayerBits& bits, const std::string& source) {
  visit_settings(bits, [&](const char* name, auto& setting) {
    const auto found = json.find(name);
    if (found == json.end()) return;
    if (const std::string_view wanted = read(*found, setting); !wanted.empty())
      refuse(source, bits.pattern, name, " must be ", wanted, ", not ", shown(*found));
  });
  const std::vector<std::string> known = setting_names();
  for (const auto& item : json.items())
    if (std::ranges::count(known, item.key()) == 0)
      refuse(source, bits.pattern, unknown_name("key", item.key(), known));
}

LayerBits layer_bits_of(const std::string& pattern, const Json& json, const std::string& source) {
  LayerBits bits{.pattern = pattern};
  if (json.is_object()) {
    read_settings(json, bits, source);
  } else if (json.is_number()) {
    if (const std::string_view wanted = read(json, bits.weight_bits); !wanted.empty())
      refuse(source, pattern, "bits must be ", wanted, ", not ", shown(json));
    bits.activation_bits = bits.weight_bits;
  } else {
    refuse(source, pattern, "must have a number of bits or an object of settings, not ", shown(json));
  }
  return bits;
}

void check_values(const LayerBits& bits, std::string_view source) {
  const auto check_bits = [&](const char* name, const std::optional<int>& value) {
    if (value && !are_bits(*value)) refuse(source, bits.pattern, name, " must be 2 to 16, not ", *value);
  };
  check_bits("weight_bits", bits.weight_bits);
  check_bits("activation_bits", bits.activation_bits);
  check_bits("sums_bits", bits.sums_bits);
  if (bits.ema_decay && !is_decay(*bits.ema_decay))
    refuse(source, bits.pattern, "ema_decay must be in [0, 1), not ", exact(*bits.ema_decay));
}

bool matches_everything(const std::string& pattern) { return pattern.find_first_not_of('*') == std::string::npos; }

/// Refuses patterns that can never win, as far as that shows without the layers.
class ReachableCheck {
 public:
  void add(const std::string& pattern, std::string_view source) {
    if (!seen_.insert(pattern).second) refuse(source, pattern, "overlaps: the same pattern comes before it");
    if (matches_all_)
      refuse(source, pattern, "overlaps: ", quote(*matches_all_),
             " before it matches every layer, and the first match wins");
    if (matches_everything(pattern)) matches_all_ = &pattern;
  }

 private:
  std::unordered_set<std::string_view> seen_;
  const std::string* matches_all_ = nullptr;
};

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

std::vector<std::string> names_of_layer(std::string_view layer) {
  std::vector<std::string> names = {std::string(layer)};
  if (layer.ends_with(kFolded)) names.push_back(unfolded_name(layer));
  for (std::string scope = scope_of(layer); !scope.empty(); scope = scope_of(scope)) names.push_back(scope);
  return names;
}

std::string unfolded_name(std::string_view layer) {
  if (layer.ends_with(kFolded)) layer.remove_suffix(kFolded.size());
  return std::string(layer);
}

std::string pattern_of_layer(std::string_view layer) {
  std::string pattern;
  for (const char c : unfolded_name(layer)) {
    if (kSpecial.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

bool is_literal(std::string_view pattern) { return pattern.find_first_of(kSpecial) == std::string_view::npos; }

bool fits_name(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool matches_layer(const std::string& pattern, std::string_view layer) {
  return std::ranges::any_of(names_of_layer(layer), [&](const std::string& name) { return fits_name(pattern, name); });
}

void check_layer_bits(std::span<const LayerBits> list, std::string_view source) {
  ReachableCheck reachable;
  for (const LayerBits& bits : list) {
    if (bits.pattern.empty()) refuse(source, "", "an empty pattern matches no layer; \"*\" matches all");
    // fnmatch() would take what stands before it for the whole.
    if (bits.pattern.find('\0') != std::string::npos) refuse(source, bits.pattern, "a NUL is in no layer's name");
    if (bits == LayerBits{.pattern = bits.pattern}) refuse(source, bits.pattern, "sets nothing");
    check_values(bits, source);
    reachable.add(bits.pattern, source);
  }
}

std::vector<LayerBits> layer_bits_from_json(std::string_view text, const std::string& source) {
  Json json;
  try {
    json = parse_json(text);
  } catch (const Error& error) {
    fail(source, ": ", error.what());
  }
  if (!json.is_object()) fail(source, ": must be a JSON object from patterns on layer names to their bits");
  if (json.empty()) fail(source, ": the object is empty; it must name at least one pattern");
  std::vector<LayerBits> list;
  for (const auto& item : json.items()) list.push_back(layer_bits_of(item.key(), item.value(), source));
  check_layer_bits(list, source);
  return list;
}

Json layer_bits_to_json(std::span<const LayerBits> list) {
  // Put at the end, where json[pattern] would look through all patterns before it.
  Json::object_t json;
  for (const LayerBits& bits : list) {
    Json settings = Json::object();
    visit_settings(bits, [&](const char* name, const auto& setting) {
      if (setting) settings[name] = written(*setting);
    });
    json.push_back({bits.pattern, std::move(settings)});
  }
  return Json(std::move(json));
}

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

LayerBitsIndex::LayerBitsIndex(std::span<const LayerBits> list) : list_(list), patterns_(1) {
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
    patterns_[node].push_back(i);
  }
}

std::size_t LayerBitsIndex::node_of(std::string_view piece) {
  std::size_t node = 0;
  for (const char byte : piece) {
    const auto [child, is_new] = children_.try_emplace(child_key(node, byte), patterns_.size());
    if (is_new) patterns_.emplace_back();
    node = child->second;
  }
  return node;
}

std::vector<const LayerBitsIndex::Indices*> LayerBitsIndex::candidates(std::string_view name) const {
  std::vector<const Indices*> found = {&patterns_[0]};
  for (std::size_t begin = 0; begin < name.size(); ++begin) {
    std::size_t node = 0;
    for (const char byte : name.substr(begin)) {
      const auto child = children_.find(child_key(node, byte));
      if (child == children_.end()) break;
      node = child->second;
      if (!patterns_[node].empty()) found.push_back(&patterns_[node]);
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
    for (const Indices* indices : candidates(name))
      for (const std::size_t i : *indices) {
        if (i >= first) break;
        if (fits_name(list_[i].pattern, name)) first = i;
      }
  return first == list_.size() ? nullptr : &list_[first];
}

std::vector<std::size_t> LayerBitsIndex::first_layers(std::span<const std::string_view> layers) const {
  std::vector<std::size_t> first(list_.size(), layers.size());
  for (std::size_t k = 0; k < layers.size(); ++k)
    for (const std::string& name : names_of_layer(layers[k]))
      for (const Indices* indices : candidates(name))
        for (const std::size_t i : *indices)
          if (first[i] == layers.size() && fits_name(list_[i].pattern, name)) first[i] = k;
  return first;
}

}  // namespace miniqat::quantize
