#include "exporters/c/text.h"

#include <algorithm>
#include <array>

#include "core/text/classic.h"
#include "core/text/quote.h"

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

std::string in_comment(std::string_view text) {
  std::string plain = printable(text);
  char previous = ' ';
  for (char& c : plain) {
    const bool is_mark = (c == '/' && previous == '*') || (c == '*' && previous == '/');
    const bool is_trigraph = c == '?' && previous == '?';
    if (is_mark || is_trigraph) c = '_';
    previous = c;
  }
  // It would continue the line.
  if (plain.ends_with('\\')) plain.back() = '_';
  return plain;
}

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

std::string float_constant(float value) {
  std::string constant = formatted("%.9g", static_cast<double>(value));
  if (constant.find_first_of(".e") == std::string::npos) constant += ".0";
  return constant + "f";
}

std::string with_names(std::string_view text, const std::string& prefix, const std::string& macro) {
  std::string result;
  for (const char c : text) {
    if (c == '@')
      result += prefix;
    else if (c == '#')
      result += macro;
    else
      result += c;
  }
  return result;
}

}  // namespace miniqat::exporters
