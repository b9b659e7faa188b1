#pragma once

#include <string>

#include "core/graph/graph.h"

namespace miniqat::quantize {

// What conversion to integers refuses, in words.

/// Throws NotQuantized: `reader` reads a tensor that no quantizer gave a range.
[[noreturn]] void fail_without_range(Output tensor, const std::string& reader);
/// Throws Error, for a batch norm NotQuantized: integer models have no such op.
[[noreturn]] void fail_unsupported(const Node& node);

}  // namespace miniqat::quantize
