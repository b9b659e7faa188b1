#include "exporters/c/text.h"

#include "core/classic.h"
#include "core/text/quote.h"

namespace miniqat::exporters {

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

std::string float_constant(float value) {
  char text[32];
  classic_snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  std::string constant = text;
  if (constant.find_first_of(".e") == std::string::npos) constant += ".0";
  return constant + "f";
}

}  // namespace miniqat::exporters
