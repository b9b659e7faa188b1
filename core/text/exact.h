#pragma once

#include <charconv>
#include <string>

namespace miniqat {

/// A number with as few digits as tell it from all others of its type: 1.0000001, where a stream says 1.
template <class Real>
std::string exact(Real value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace miniqat
