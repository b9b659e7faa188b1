#pragma once

#include <stdexcept>
#include <string>

#include "core/text/concat.h"

namespace miniqat {

/// One line about a failure, which names the thing (node, file, option) and both sides of a mismatch.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Numbers that a network computed are NaN or infinite: whoever computes the same again meets them again.
class NonFiniteValue : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void throw_error(std::initializer_list<TextPart> parts);

/// Throws Error with the joined parts as its text.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw_error({TextPart(parts)...});
}

}  // namespace miniqat
