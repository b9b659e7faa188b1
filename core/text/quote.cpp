#include "core/text/quote.h"

#include <algorithm>
#include <cstdint>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/utf8.h"

namespace miniqat {
namespace {

constexpr std::size_t kLongest = 200;
constexpr std::size_t kHead = 120;
constexpr std::size_t kTail = 60;

bool is_harmless(std::uint32_t code) {
  return code >= ' ' && !utf8::in(code, 0x7f, 0x9f) && code != 0x61c && !utf8::in(code, 0x200b, 0x200f) &&
         !utf8::in(code, 0x2028, 0x202e) && !utf8::in(code, 0x2060, 0x206f) && code != 0xfeff;
}

std::string escape(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x80 ? formatted("\\x%02x", static_cast<unsigned>(code))
                         : formatted("\\u%04x", static_cast<unsigned>(code));
  }
}

/// Harmless, with a backslash before each of `escaped`.
std::string harmless(std::string_view text, std::string_view escaped) {
  std::string result;
  while (!text.empty()) {
    const utf8::Character character = utf8::first_character(text);
    const std::size_t taken = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      result += formatted("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    } else if (!is_harmless(character.code)) {
      result += escape(character.code);
    } else {
      if (escaped.find(text[0]) != std::string_view::npos) result += '\\';
      result += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return result;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// Cut between characters, unless there are no such.
std::string_view head_of(std::string_view text) {
  std::size_t size = kHead;
  while (size > kHead - 4 && continues_character(text[size])) --size;
  return text.substr(0, size);
}

std::string_view tail_of(std::string_view text) {
  std::size_t begin = text.size() - kTail;
  while (begin < text.size() - kTail + 4 && continues_character(text[begin])) ++begin;
  return text.substr(begin);
}

}  // namespace

std::string printable(std::string_view text) { return harmless(text, ""); }

std::string shortened(std::string_view text) {
  if (text.size() <= kLongest) return std::string(text);
  return concat(head_of(text), "...", tail_of(text));
}

std::string quote(std::string_view text) {
  const std::string quotes = '"' + harmless(shortened(text), "\"\\") + '"';
  return text.size() <= kLongest ? quotes : concat(quotes, " (", text.size(), " bytes)");
}

namespace {

/// Means nothing to any shell, wherever it stands; but zsh takes =ls for the path of ls.
bool is_plain_word(std::string_view word) {
  return !word.empty() && word.front() != '=' &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") ==
             std::string_view::npos;
}

/// Between single quotes nothing has a meaning but the quote, and in fish the backslash: both stand outside of them.
std::string in_single_quotes(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : c == '\\' ? "'\\\\'" : std::string(1, c);
  return text + "'";
}

/// With numbers for all but letters, digits and the like, so that nothing is left to the meaning of a mark.
std::string in_octal_numbers(std::string_view word) {
  std::string text = "$'";
  for (const char c : word) {
    if (is_plain_word({&c, 1})) {
      text += c;
      continue;
    }
    text += formatted("\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return text + "'";
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (is_plain_word(word)) return std::string(word);
  return printable(word) == word ? in_single_quotes(word) : in_octal_numbers(word);
}

std::string shell_path(const std::filesystem::path& path) { return shell_quoted(path_word(path)); }

std::string path_word(const std::filesystem::path& path) {
  return path.native().starts_with('-') ? "./" + path.native() : path.native();
}

}  // namespace miniqat
