#pragma once

#include <string>
#include <vector>

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library.

/// x under the extents of an ONNX Reshape, Flatten, Squeeze or Unsqueeze, without moving a number: [n, c, h, w] to
/// [n, c * h * w] becomes [n, h, w, c] to [n, h * w * c], and Activation::columns says where each column of ONNX's
/// went. The product of either extents, without the batch, is a tensor's at most. Throws Error naming the node when the
/// extents need another order of numbers than ours have.
Activation reshaped(Translation& t, const OnnxNode& node, const Activation& x,
                    const std::vector<std::int64_t>& extents);

}  // namespace miniqat::importers
