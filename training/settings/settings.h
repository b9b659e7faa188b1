#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

// Settings are structs that list their fields once, in a static function
//
//   template <class Visitor> static void visit(Visitor&& visitor) {
//     visitor("learning_rate", [](auto& settings) -> auto& { return settings.learning_rate; }, "step size");
//   }
//
// from which flags (--learning-rate), JSON (config.json) and comparisons are made. Fields are std::string,
// std::int64_t, int, double, bool, std::optional of std::int64_t or double, or an enumeration for which names_of(value)
// gives the names of all values in order.

using Json = nlohmann::ordered_json;

inline std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  for (char& c : flag)
    if (c == '_') c = '-';
  return flag;
}

/// The text of an error with a flag in place of the name that it begins with, when that is a setting's: options are
/// checked where they are used, under their own names ("weight_bits must be 2 to 16").
template <class Settings>
std::string with_flag(const std::string& text) {
  const std::string name = text.substr(0, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
  bool known = false;
  Settings::visit([&](const char* setting, auto, const char*) { known = known || name == setting; });
  return known ? flag_of(name) + text.substr(name.size()) : text;
}

/// Calls `check`, as as_usage() does, of options that are settings.
template <class Settings, class Check>
void check_options(const Check& check) {
  try {
    as_usage(check);
  } catch (const UsageError& error) {
    throw UsageError(with_flag<Settings>(error.what()));
  }
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
Json field_to_json(const T& field) {
  if constexpr (kIsOptional<T>)
    return field ? Json(*field) : Json(nullptr);
  else if constexpr (std::is_enum_v<T>)
    return std::string(names_of(field)[static_cast<std::size_t>(field)]);
  else
    return field;
}

template <class Settings>
Json settings_to_json(const Settings& settings) {
  Json json = Json::object();
  Settings::visit([&](const char* name, auto access, const char*) { json[name] = field_to_json(access(settings)); });
  return json;
}

/// False, as below, for what is no whole number or does not fit.
template <class Integer>
bool integer_from_json(const Json& json, Integer& field) {
  if (!json.is_number_integer()) return false;
  const bool fits = json.is_number_unsigned() ? std::in_range<Integer>(json.get<std::uint64_t>())
                                              : std::in_range<Integer>(json.get<std::int64_t>());
  if (fits) field = json.get<Integer>();
  return fits;
}

template <class T>
bool field_from_json(const Json& json, T& field) {
  if constexpr (kIsOptional<T>) {
    if (!json.is_null()) return field_from_json(json, field.emplace());
    field.reset();
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    const auto names = names_of(field);
    const auto found = json.is_string() ? std::ranges::find(names, json.get<std::string>()) : names.end();
    if (found == names.end()) return false;
    field = static_cast<T>(found - names.begin());
    return true;
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return integer_from_json(json, field);
  } else {
    const bool fits = std::is_same_v<T, std::string> ? json.is_string()
                      : std::is_same_v<T, bool>      ? json.is_boolean()
                                                     : json.is_number();
    if (fits) field = json.get<T>();
    return fits;
  }
}

/// Sets the fields that `json` mentions. Throws UsageError for an unknown field (with a suggestion) or a wrong type.
template <class Settings>
void settings_from_json(const Json& json, Settings& settings, const std::string& source) {
  if (!json.is_object()) throw UsageError(source + ": settings must be a JSON object");
  std::vector<std::string> known;
  Settings::visit([&](const char* name, auto access, const char*) {
    known.push_back(name);
    const auto found = json.find(name);
    if (found != json.end() && !field_from_json(*found, access(settings)))
      throw UsageError(concat(source, ": ", quote(name), " cannot be ", shown(*found)));
  });
  for (const auto& item : json.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      throw UsageError(concat(source, ": unknown setting ", quote(item.key()), did_you_mean(item.key(), known)));
}

}  // namespace miniqat::training
