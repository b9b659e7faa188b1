#pragma once

#include "core/text/error.h"

namespace miniqat::quantize {

/// A tensor lacks what a rewrite would have given it; the cure is another rewrite, not another network.
class NotQuantized : public Error {
 public:
  using Error::Error;
};

/// A tensor lacks a range that a quantized picture would have given it: the cure is `quantize_input`.
class PictureNotQuantized : public NotQuantized {
 public:
  using NotQuantized::NotQuantized;
};

}  // namespace miniqat::quantize
