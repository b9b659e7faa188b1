#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace miniqat::utf8 {

/// The bytes of a character and its number; 0 bytes for what is not UTF-8.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

/// The character that `text` begins with. `text` must not be empty.
Character first_character(std::string_view text);

/// Whether a text has no byte that is not UTF-8.
bool is_valid(std::string_view text);

constexpr bool in(std::uint32_t code, std::uint32_t low, std::uint32_t high) { return code >= low && code <= high; }

/// The columns that a text of printable characters takes on a terminal: 2 for a wide character (Chinese, Japanese,
/// Korean, emoji: Unicode's East Asian Width W and F, in ranges), 0 for a mark that sits on the character before it, 1
/// for any other, and for each byte that is not UTF-8. The locale plays no part.
std::size_t columns(std::string_view text);

/// A text of more than `most` columns as its beginning and its end with "..." between them, of at most `most` columns.
/// `most` must be at least 5.
std::string fitted(std::string_view text, std::size_t most);

}  // namespace miniqat::utf8
