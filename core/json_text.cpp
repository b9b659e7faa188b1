#include "core/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kDeepest = 64;
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

/// The library's message without its own prefix "[json.exception...] parse error at line 1, column 2: ", cut short
/// where it quotes a long token, and without the bytes of a binary file.
std::string plain_reason(std::string_view message) {
  for (const std::string_view prefix : {"] ", "column ", ": "})
    if (const std::size_t found = message.find(prefix); found != std::string_view::npos)
      message.remove_prefix(found + prefix.size());
  std::string reason(message.substr(0, kLongestReason));
  std::ranges::replace_if(
      reason, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return message.size() <= kLongestReason ? reason : reason + "...";
}

/// Walks through the text without building anything and throws Error at the first thing wrong. (The library could check
/// while it builds, but then takes time that grows with the square of a list's length.)
class Checker final : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    std::set<std::string>& names = names_.back();
    if (names.size() == kMostKeys) fail("an object has more than ", kMostKeys, " keys");
    if (!names.insert(name).second) fail("the key ", Json(name).dump(), " stands twice in one object");
    return true;
  }
  bool parse_error(std::size_t offset, const std::string&, const nlohmann::detail::exception& error) override {
    fail("malformed JSON at ", place_of(text_, offset), ": ", plain_reason(error.what()));
  }

 private:
  bool open() {
    if (names_.size() == kDeepest) fail("JSON nests deeper than ", kDeepest, " levels");
    names_.emplace_back();
    return true;
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  std::string_view text_;
  /// The keys seen so far in each open object; empty for an open list.
  std::vector<std::set<std::string>> names_;
};

}  // namespace

Json parse_json(std::string_view text) {
  Checker checker(text);
  Json::sax_parse(text, &checker);
  return Json::parse(text);
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
