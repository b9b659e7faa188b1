#pragma once

#include <vector>

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library: a channel shuffle of three nodes, Reshape of [n, c, h, w] to [n, groups, c / groups, h,
// w], Transpose [0, 2, 1, 3, 4] and Reshape back. Channel i * groups + g of the result is channel g * (c / groups) + i
// of the image. Each function is for one of the nodes: it returns false, and has done nothing, where the node is not
// that step.

/// The first Reshape. One that reshaped() takes, since it moves no number, is none.
bool splits_channels(Translation& t, const OnnxNode& node, const Activation& x,
                     const std::vector<std::int64_t>& extents);

/// The Transpose with these axes.
bool turns_channels(Translation& t, const OnnxNode& node, const std::vector<std::int64_t>& axes);

/// The second Reshape, which becomes Slices and a Concat. Throws Error naming the node for more than 256 Slices.
bool joins_channels(Translation& t, const OnnxNode& node, const std::vector<std::int64_t>& extents);

}  // namespace miniqat::importers
