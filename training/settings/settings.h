#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

// Settings are structs that list their fields once, in a table:
//
//   static const auto& table() {
//     using S = SensitivitySettings;
//     static const std::tuple kTable{Setting("seed", &S::seed, "chooses the pictures", not_negative())};
//     return kTable;
//   }
//
// Flags (--seed), JSON (config.json), Python's keywords, checks and comparisons are made of it. Fields are std::string,
// std::int64_t, int, double, bool, std::optional of std::int64_t or double, or an enumeration for which names_of(value)
// gives the names of all values in order.

using Json = nlohmann::ordered_json;

/// The numbers that a setting may be, and the words of the error about others: "must be in 0..1024".
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string text = {};
};

inline Limits within(std::int64_t low, std::int64_t high) {
  return {static_cast<double>(low), static_cast<double>(high), concat("must be in ", low, "..", high)};
}
inline Limits at_most(std::int64_t high) {
  return {.high = static_cast<double>(high), .text = concat("must be at most ", high)};
}
/// Infinity is no number to compute with.
inline Limits at_least(std::int64_t low) {
  return {static_cast<double>(low), std::numeric_limits<double>::max(), concat("must be at least ", low)};
}
inline Limits not_negative() { return {.low = 0, .text = "must not be negative"}; }

/// A row of a table.
template <class Owner, class Field>
struct Setting {
  Setting(const char* its_name, Field Owner::*its_field, const char* its_help, Limits its_limits = {})
      : name(its_name), field(its_field), help(its_help), limits(std::move(its_limits)) {}

  const char* name;
  Field Owner::*field;
  const char* help;
  Limits limits;
};

/// Calls visitor(name, access, help) for each row; access(settings) is the field. The table must stay.
template <class... Rows, class Visitor>
void visit_table(const std::tuple<Rows...>& table, Visitor&& visitor) {
  const auto visit_row = [&](const auto& row) {
    visitor(
        row.name, [&row](auto& settings) -> auto& { return settings.*row.field; }, row.help);
  };
  std::apply([&](const Rows&... rows) { (visit_row(rows), ...); }, table);
}

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

/// Throws UsageError that names the first setting which is beyond its limits.
template <class Settings, class... Rows>
void check_limits(const std::tuple<Rows...>& table, const Settings& settings) {
  const auto in_text = [](const auto& number) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(number)>>)
      return exact(number);
    else
      return number;
  };
  const auto check_number = [&](const char* name, const Limits& limits, const auto& number) {
    const auto value = static_cast<double>(number);
    if (!limits.text.empty() && !(value >= limits.low && value <= limits.high))
      throw UsageError(concat(flag_of(name), " ", limits.text, ", got ", in_text(number)));
  };
  const auto check_row = [&](const auto& row) {
    const auto& field = settings.*row.field;
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (kIsOptional<Field>) {
      if (field) check_number(row.name, row.limits, *field);
    } else if constexpr (std::is_arithmetic_v<Field>) {
      check_number(row.name, row.limits, field);
    }
  };
  std::apply([&](const Rows&... rows) { (check_row(rows), ...); }, table);
}

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
