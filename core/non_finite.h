#pragma once

#include "core/error.h"

namespace miniqat {

/// Numbers that a network computed are NaN or infinite: whoever computes the same again meets them again.
class NonFiniteValue : public Error {
 public:
  using Error::Error;
};

}  // namespace miniqat
