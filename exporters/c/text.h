#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/error.h"

namespace miniqat::exporters {

/// A name or path as part of a comment in C: printable() UTF-8 that neither ends the comment nor makes a trigraph or a
/// continued line: `_` stands for the character that would.
std::string in_comment(std::string_view text);

/// Whether a text is an identifier of C: a letter or '_', then letters, digits and '_'; no keyword.
bool is_identifier(std::string_view text);

/// A name of a graph as part of an identifier: everything but letters and digits becomes '_'.
std::string identifier(std::string_view name);

/// A float as a constant of C that is read back as the same.
std::string float_constant(float value);

/// `text` with the prefix for "@" and the prefix in capitals for "#".
std::string with_names(std::string_view text, const std::string& prefix, const std::string& macro);

/// Appends `{1, 2, 3}` with lines of at most 120 columns.
template <class Integers>
void append_list(std::string& text, const Integers& values) {
  constexpr std::size_t kWidth = 120;
  text += '{';
  std::size_t line = text.size() - (text.rfind('\n') + 1);
  const char* separator = "";
  for (const auto value : values) {
    char digits[24];
    const char* end = std::to_chars(digits, digits + sizeof digits, std::int64_t{value}).ptr;
    const std::string_view number(digits, static_cast<std::size_t>(end - digits));
    text += separator;
    if (line + number.size() + 3 > kWidth) {
      text += "\n  ";
      line = 2;
    } else if (*separator != '\0') {
      text += ' ';
      ++line;
    }
    text += number;
    separator = ",";
    line += number.size() + 1;
  }
  text += '}';
}

/// Appends `static const TYPE NAME[N] = {...};` and a line's end. `values` must not be empty.
template <class Integers>
void append_array(std::string& text, std::string_view type, const std::string& name, const Integers& values) {
  text += concat("static const ", type, " ", name, "[", values.size(), "] = ");
  append_list(text, values);
  text += ";\n";
}

}  // namespace miniqat::exporters
