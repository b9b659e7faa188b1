#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace miniqat {

/// One line about a failure, which names the thing (node, file, option) and both sides of a mismatch.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Joins anything that can be streamed into one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// Throws Error with the joined parts as its text.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(concat(parts...));
}

}  // namespace miniqat
