#include "core/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kDeepest = 64;
/// An object looks its keys up one by one, so that a million of them would take hours.
constexpr std::size_t kMostKeys = 10000;
constexpr std::size_t kLongestReason = 200;

std::string place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1);
  return concat("line ", line, ", column ", std::max<std::size_t>(column, 1));
}

/// The library's message without its own prefix "[json.exception...] parse error at line 1, column 2: ", and cut short
/// where it quotes a long token.
std::string plain_reason(std::string_view message) {
  for (const std::string_view prefix : {"] ", "column ", ": "})
    if (const std::size_t found = message.find(prefix); found != std::string_view::npos)
      message.remove_prefix(found + prefix.size());
  if (message.size() <= kLongestReason) return std::string(message);
  return std::string(message.substr(0, kLongestReason)) + "...";
}

}  // namespace

Json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&keys](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) fail("JSON nests deeper than ", kDeepest, " levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && keys.back().size() == kMostKeys)
      fail("an object has more than ", kMostKeys, " keys");
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail("the key ", parsed.dump(), " stands twice in one object");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    fail("malformed JSON at ", place_of(text, error.byte), ": ", plain_reason(error.what()));
  } catch (const Json::exception& error) {
    fail("malformed JSON: ", plain_reason(error.what()));
  }
}

std::string dump_on_one_line(const Json& json) {
  if (!json.is_structured()) return json.dump();
  std::string text(1, json.is_object() ? '{' : '[');
  const char* separator = "";
  for (const auto& item : json.items()) {
    text += separator;
    if (json.is_object()) text += Json(item.key()).dump() + ": ";
    text += dump_on_one_line(item.value());
    separator = ", ";
  }
  return text + (json.is_object() ? "}" : "]");
}

}  // namespace miniqat
