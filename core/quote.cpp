#include "core/quote.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "core/error.h"

namespace miniqat {
namespace {

constexpr std::size_t kLongest = 200;
constexpr std::size_t kHead = 120;
constexpr std::size_t kTail = 60;

/// The bytes of the character that `text` begins with, and its number; 0 bytes when that is no UTF-8.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {1, byte(0)};
  const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = byte(0) & (0x7f >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Longer than need be, half of a pair of UTF-16, or beyond Unicode.
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool right = code >= kLeast[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return right ? Character{bytes, code} : Character{};
}

bool in(std::uint32_t code, std::uint32_t low, std::uint32_t high) { return code >= low && code <= high; }

bool is_harmless(std::uint32_t code) {
  return code >= ' ' && !in(code, 0x7f, 0x9f) && code != 0x61c && !in(code, 0x200b, 0x200f) &&
         !in(code, 0x2028, 0x202e) && !in(code, 0x2060, 0x206f) && code != 0xfeff;
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
      std::array<char, 16> text{};
      std::snprintf(text.data(), text.size(), code < 0x80 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
      return text.data();
  }
}

/// Harmless, with a backslash before each of `escaped`.
std::string harmless(std::string_view text, std::string_view escaped) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t taken = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      std::array<char, 8> byte{};
      std::snprintf(byte.data(), byte.size(), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
      result += byte.data();
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

}  // namespace miniqat
