#include "exporters/c/identifier.h"

#include <algorithm>
#include <array>

namespace miniqat::exporters {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::array<std::string_view, 37> kKeywords = {
    "auto",     "break",  "case",     "char",   "const",  "continue", "default",   "do",     "double",  "else",
    "enum",     "extern", "float",    "for",    "goto",   "if",       "inline",    "int",    "long",    "register",
    "restrict", "return", "short",    "signed", "sizeof", "static",   "struct",    "switch", "typedef", "union",
    "unsigned", "void",   "volatile", "while",  "_Bool",  "_Complex", "_Imaginary"};

}  // namespace

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  if (!std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; })) return false;
  return std::ranges::find(kKeywords, text) == kKeywords.end();
}

std::string identifier(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (!is_letter(c) && !is_digit(c)) c = '_';
  return text;
}

}  // namespace miniqat::exporters
