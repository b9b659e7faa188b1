#pragma once

#include <string>

#include "core/graph/graph.h"
#include "quantize/convert/convert.h"

namespace miniqat::quantize {

// What conversion to integers refuses, in words.

/// A tensor lacks a range that a quantized picture would have given it: the cure is `quantize_input`.
class PictureNotQuantized : public NotQuantized {
 public:
  using NotQuantized::NotQuantized;
};

/// Throws NotQuantized: `reader` reads a tensor that no quantizer gave a range.
[[noreturn]] void fail_without_range(Output tensor, const std::string& reader);
/// Throws PictureNotQuantized, in words that name the cure.
[[noreturn]] void fail_without_quantized_picture(Output tensor, const std::string& reader);
/// Throws Error, for a batch norm NotQuantized: integer models have no such op.
[[noreturn]] void fail_unsupported(const Node& node);

}  // namespace miniqat::quantize
