#include "core/text/json_text.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;

std::string place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1);
  return concat("line ", line, ", column ", std::max<std::size_t>(column, 1));
}

/// What the library read last may begin far before: its last text, its last word or number, or the mark at its end.
std::string_view last_of(std::string_view token) {
  if (token.empty()) return token;
  const std::string_view head = token.substr(0, token.size() - 1);
  const std::size_t mark = token.ends_with('"') ? head.find_last_of('"') : head.find_last_of(" \t\r\n,:[]{}\"");
  const bool is_mark = std::string_view(",:[]{}").find(token.back()) != std::string_view::npos;
  if (is_mark || mark == std::string_view::npos) return is_mark ? token.substr(head.size()) : token;
  return token.substr(token.ends_with('"') ? mark : mark + 1);
}

/// What is wrong, in our words. The library tells it by a message for programmers, and by the token that it read last.
std::string reason_of(std::string_view message, std::string_view token) {
  struct Trouble {
    std::string_view sign;
    const char* words;
  };
  // A text without an end is also the end of the input: the order counts.
  static constexpr Trouble kTroubles[] = {
      {"missing closing quote", "a text lacks its closing quote"},
      {"ill-formed UTF-8", "bytes that are not UTF-8"},
      {"control character", "a control character in a text; JSON has escapes for these"},
      {"forbidden character after backslash", "a text has an escape that JSON does not have"},
      {"must be followed by", "a text has an escape that is not complete"},
      {"must follow", "a text has an escape that is not complete"},
      {"invalid number", "a number is not complete"},
      {"unexpected end of input", "unexpected end of input"},
      {"empty input", "unexpected end of input"},
  };
  if (message.find("number overflow") != std::string_view::npos)
    return concat("the number ", last_of(token), " is larger than any that can be kept");
  for (const Trouble& trouble : kTroubles)
    if (message.find(trouble.sign) != std::string_view::npos) return trouble.words;
  return concat("unexpected ", quote(last_of(token)));
}

/// Builds the value and throws Error at the first thing wrong. (The library's own way looks through all keys of an
/// object for each new one, and a million of them would take hours.)
class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(std::string_view text) : text_(text) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second) fail("the key ", quote(name), " occurs twice in one object");
    level.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t offset, const std::string& token, const nlohmann::detail::exception& error) override {
    fail("malformed JSON at ", place_of(text_, offset), ": ", reason_of(error.what(), token));
  }

 private:
  /// An object or a list that is not closed yet.
  struct Level {
    Json* json;
    /// The keys of an object seen so far, and the one whose value comes next.
    std::set<std::string> keys = {};
    std::string key = {};
  };

  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  /// The new value's place, which stays where it is until the list or object that holds it goes on.
  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.json->is_array()) {
      level.json->push_back(std::move(value));
      return &level.json->back();
    }
    // The vector that an object is, since its own emplace() would look for the key.
    Json::object_t::Container& members = *level.json->get_ptr<Json::object_t*>();
    return &members.emplace_back(std::move(level.key), std::move(value)).second;
  }
  bool open(Json empty) {
    if (levels_.size() == kDeepestJson) fail("JSON nests deeper than ", kDeepestJson, " levels");
    levels_.push_back({.json = place(std::move(empty))});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view text_;
  Json root_;
  std::vector<Level> levels_;
};

}  // namespace

Json parse_json(std::string_view text) {
  JsonBuilder builder(text);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string shown(const Json& json) {
  if (json.is_string()) return quote(json.get_ref<const std::string&>());
  return printable(shortened(dump_on_one_line(json)));
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
