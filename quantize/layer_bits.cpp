#include "quantize/layer_bits.h"

#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/graph.h"
#include "core/json_text.h"
#include "core/quote.h"
#include "core/suggest.h"

namespace miniqat::quantize {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kFolded = "_Fold";
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
  std::string known_text;
  for (const std::string& name : known) known_text += (known_text.empty() ? "" : ", ") + name;
  for (const auto& item : json.items())
    if (std::ranges::count(known, item.key()) == 0)
      refuse(source, bits.pattern, "unknown key ", quote(item.key()), did_you_mean(item.key(), known), "; known are ",
             known_text);
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
  if (bits.ema_decay && !is_decay(*bits.ema_decay))
    refuse(source, bits.pattern, "ema_decay must be in [0, 1), not ", *bits.ema_decay);
}

bool matches_everything(const std::string& pattern) { return pattern.find_first_not_of('*') == std::string::npos; }

/// Only what can be told without knowing the layers.
void check_reachable(std::span<const LayerBits> before, const std::string& pattern, std::string_view source) {
  for (const LayerBits& earlier : before) {
    if (earlier.pattern == pattern) refuse(source, pattern, "overlaps: the same pattern stands before it");
    if (matches_everything(earlier.pattern))
      refuse(source, pattern, "overlaps: ", quote(earlier.pattern),
             " before it matches every layer, and the first match wins");
  }
}

}  // namespace

bool matches_layer(const std::string& pattern, std::string_view layer) {
  const auto fits = [&](std::string_view name) { return fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0; };
  if (fits(layer)) return true;
  if (layer.ends_with(kFolded) && fits(layer.substr(0, layer.size() - kFolded.size()))) return true;
  for (std::string scope = scope_of(layer); !scope.empty(); scope = scope_of(scope))
    if (fits(scope)) return true;
  return false;
}

const LayerBits* first_match(std::span<const LayerBits> list, std::string_view layer) {
  const auto found =
      std::ranges::find_if(list, [&](const LayerBits& bits) { return matches_layer(bits.pattern, layer); });
  return found == list.end() ? nullptr : &*found;
}

void check_layer_bits(std::span<const LayerBits> list, std::string_view source) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const LayerBits& bits = list[i];
    if (bits.pattern.empty()) refuse(source, "", "an empty pattern matches no layer; \"*\" matches all");
    if (bits == LayerBits{.pattern = bits.pattern}) refuse(source, bits.pattern, "sets nothing");
    check_values(bits, source);
    check_reachable(list.first(i), bits.pattern, source);
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
  Json json = Json::object();
  for (const LayerBits& bits : list) {
    Json settings = Json::object();
    visit_settings(bits, [&](const char* name, const auto& setting) {
      if (setting) settings[name] = *setting;
    });
    json[bits.pattern] = std::move(settings);
  }
  return json;
}

}  // namespace miniqat::quantize
