#include "exporters/c/text.h"

#include <cstdio>

namespace miniqat::exporters {

std::string in_comment(std::string_view text) {
  std::string plain(text);
  char previous = ' ';
  for (char& c : plain) {
    if (c < ' ' || c > '~' || c == '\\' || c == '?' || (c == '/' && previous == '*') || (c == '*' && previous == '/'))
      c = '_';
    previous = c;
  }
  return plain;
}

std::string float_constant(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  std::string constant = text;
  if (constant.find_first_of(".e") == std::string::npos) constant += ".0";
  return constant + "f";
}

}  // namespace miniqat::exporters
