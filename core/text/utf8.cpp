#include "core/text/utf8.h"

#include <algorithm>
#include <array>

#include "core/text/error.h"

namespace miniqat::utf8 {
namespace {

struct CodeRange {
  std::uint32_t low;
  std::uint32_t high;
};

constexpr std::array<CodeRange, 27> kWide = {
    {{0x1100, 0x115f}, {0x231a, 0x231b},   {0x2329, 0x232a},  {0x23e9, 0x23ec}, {0x25fd, 0x25fe}, {0x2614, 0x2615},
     {0x2648, 0x2653}, {0x26aa, 0x26ab},   {0x26bd, 0x26be},  {0x26c4, 0x26c5}, {0x2705, 0x2705}, {0x270a, 0x270b},
     {0x2728, 0x2728}, {0x2753, 0x2755},   {0x2b1b, 0x2b1c},  {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf},
     {0x4e00, 0xa4cf}, {0xa960, 0xa97f},   {0xac00, 0xd7a3},  {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60},
     {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}}};

/// Combining marks of Latin, Greek and Cyrillic, voicing marks of Japanese, selectors of variants.
constexpr std::array<CodeRange, 7> kMarks = {{{0x0300, 0x036f},
                                              {0x0483, 0x0489},
                                              {0x1ab0, 0x1aff},
                                              {0x1dc0, 0x1dff},
                                              {0x20d0, 0x20ff},
                                              {0x3099, 0x309a},
                                              {0xfe00, 0xfe0f}}};

template <class Ranges>
bool is_among(const Ranges& ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges, [&](const CodeRange& range) { return in(code, range.low, range.high); });
}

std::size_t columns_of(const Character& character) {
  if (character.code < 0x300 || character.bytes == 0) return 1;
  if (is_among(kMarks, character.code)) return 0;
  return is_among(kWide, character.code) ? 2 : 1;
}

/// The bytes that a character takes, or one for a byte that is none.
std::size_t taken(const Character& character) { return std::max<std::size_t>(character.bytes, 1); }

/// Calls `each` with the bytes and the columns of each character.
template <class Each>
void for_each_character(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const Character character = first_character(text);
    each(text.substr(0, taken(character)), columns_of(character));
    text.remove_prefix(taken(character));
  }
}

}  // namespace

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

bool is_valid(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::size_t columns(std::string_view text) {
  std::size_t sum = 0;
  for_each_character(text, [&](std::string_view, std::size_t width) { sum += width; });
  return sum;
}

std::string fitted(std::string_view text, std::size_t most) {
  const std::size_t all = columns(text);
  if (all <= most) return std::string(text);
  constexpr std::string_view kDots = "...";
  const std::size_t tail = (most - kDots.size()) / 2, head = most - kDots.size() - tail;
  std::string begin, end;
  std::string* part = &begin;
  std::size_t at = 0;
  for_each_character(text, [&](std::string_view bytes, std::size_t width) {
    // A mark goes where the character before it went.
    if (width > 0) part = at + width <= head ? &begin : at >= all - tail ? &end : nullptr;
    if (part != nullptr) *part += bytes;
    at += width;
  });
  return concat(begin, kDots, end);
}

}  // namespace miniqat::utf8
