#pragma once

#include <string>
#include <vector>

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library.

/// Why a Reshape to these extents is refused that would have to move numbers.
std::string mixing_text(const OnnxNode& node, const std::vector<std::int64_t>& from,
                        const std::vector<std::int64_t>& to);

/// The columns of matrices [batch, features] that stand side by side, in that order. Empty where every column is where
/// ONNX has it. Throws Error naming the node for more than 2^24 columns of another order.
Columns columns_side_by_side(const OnnxNode& node, const std::vector<Activation>& matrices);

/// x under the extents of an ONNX Reshape, Flatten, Squeeze or Unsqueeze, without moving a number: [n, c, h, w] to
/// [n, c * h * w] becomes [n, h, w, c] to [n, h * w * c], and Activation::columns says where each column of ONNX's
/// went. The product of either extents, without the batch, is a tensor's at most. Throws Error naming the node when the
/// extents need another order of numbers than ours have.
Activation reshaped(Translation& t, const OnnxNode& node, const Activation& x,
                    const std::vector<std::int64_t>& extents);

// A channel shuffle of three nodes, Reshape of [n, c, h, w] to [n, groups, c / groups, h,
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
