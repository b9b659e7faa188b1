#include "integer/format/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::integer {

using Json = nlohmann::ordered_json;

std::string shown(const Json& json) {
  constexpr std::size_t kLongest = 60;
  if (json.is_object()) return "an object";
  if (json.is_array()) return concat("a list of ", json.size());
  const std::string text = json.dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::int64_t json_integer(const Json& json, const std::string& what, std::int64_t low, std::int64_t high) {
  const bool fits = json.is_number_unsigned()
                        ? json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                        : json.is_number_integer();
  if (!fits || json.get<std::int64_t>() < low || json.get<std::int64_t>() > high)
    fail(what, " must be a whole number from ", low, " to ", high, ", is ", shown(json));
  return json.get<std::int64_t>();
}

JsonFields::JsonFields(const Json& json) : json_(json) {
  if (!json.is_object()) fail("must be an object, is ", shown(json));
}

const Json& JsonFields::at(const char* key) {
  taken_.emplace_back(key);
  const auto found = json_.find(key);
  if (found == json_.end()) fail("lacks ", quote(key));
  return *found;
}

std::string JsonFields::text(const char* key) {
  const Json& json = at(key);
  if (!json.is_string()) fail(key, " must be a text, is ", shown(json));
  return json.get<std::string>();
}

std::int64_t JsonFields::integer(const char* key, std::int64_t low, std::int64_t high) {
  return json_integer(at(key), key, low, high);
}

std::int32_t JsonFields::int32(const char* key) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(integer(key, Limits::min(), Limits::max()));
}

float JsonFields::number(const char* key) {
  const Json& json = at(key);
  if (!json.is_number() || !(std::abs(json.get<double>()) <= double{std::numeric_limits<float>::max()}))
    fail(key, " must be a number that a float can hold, is ", shown(json));
  return static_cast<float>(json.get<double>());
}

const Json& JsonFields::list(const char* key) {
  const Json& json = at(key);
  if (!json.is_array()) fail(key, " must be a list, is ", shown(json));
  return json;
}

std::vector<std::int64_t> JsonFields::integers(const char* key, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> numbers;
  for (const Json& number : list(key)) numbers.push_back(json_integer(number, concat("in ", key, " each"), low, high));
  return numbers;
}

std::vector<std::string> JsonFields::texts(const char* key) {
  std::vector<std::string> texts;
  for (const Json& text : list(key)) {
    if (!text.is_string()) fail("in ", key, " each must be a text, one is ", shown(text));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

void JsonFields::done() const {
  for (const auto& [key, value] : json_.items())
    if (std::ranges::find(taken_, key) == taken_.end())
      fail("has the unknown key ", shown(Json(key)), did_you_mean(key, taken_));
}

}  // namespace miniqat::integer
