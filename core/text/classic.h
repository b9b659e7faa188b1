#pragma once

#include <cstddef>
#include <string>

// Text for machines is the same whatever locale the program has set, by setlocale() or std::locale::global(). Streams
// get std::locale::classic(), numbers by themselves std::to_chars and std::from_chars; here is what else it takes.
// tests/house_test.cpp keeps the functions that ask the locale out of the libraries.
namespace miniqat {

/// std::snprintf in the locale "C". Also the return value is that of std::snprintf.
[[gnu::format(printf, 3, 4)]] int classic_snprintf(char* text, std::size_t size, const char* pattern, ...);
/// A text of any length in the locale "C".
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* pattern, ...);

/// Letters and digits of ASCII; any other byte stays as it is. std::tolower('I') is 'I' in a Turkish locale.
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_ascii_letter(char c) { return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'; }
std::string lower_case(std::string text);

}  // namespace miniqat
