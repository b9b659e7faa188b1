#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "core/tensors/window.h"

namespace miniqat::layers {

// Convolutions and pools over sequences, [n, steps, channels] to [n, steps', channels']: the ops over images whose
// height is the steps and whose width is 1. Each builder adds `name`/image, a Reshape to [n, steps, 1, channels], the
// op `name` and `name`/steps, a Reshape back. Both are views and cost nothing. Of two builders in a row the second one
// takes the image of the first: the Reshape back is for other readers only. They throw what the ops throw, and Error
// for anything but a sequence.

struct Conv1dAttributes {
  std::int64_t stride = 1;
  Padding padding = Padding::kSame;
  std::int64_t dilation = 1;
  /// Steps before and after, with Padding::kExplicit: [(k - 1) * dilation, 0] looks at no later step.
  std::array<std::int64_t, 2> pads = {0, 0};
};

/// filter: [k, 1, in, out], as Conv2d has it, so that the variable is what a rewrite looks for.
Output conv1d(Graph& graph, const std::string& name, Output x, Output filter, const Conv1dAttributes& attributes = {});

/// Convolves every channel by itself. filter: [k, 1, in, multiplier].
Output depthwise_conv1d(Graph& graph, const std::string& name, Output x, Output filter,
                        const Conv1dAttributes& attributes = {});

struct Pool1dAttributes {
  std::int64_t window = 2;
  /// 0 means the window.
  std::int64_t stride = 0;
  Padding padding = Padding::kValid;
  /// Steps before and after, with Padding::kExplicit.
  std::array<std::int64_t, 2> pads = {0, 0};
};

Output max_pool1d(Graph& graph, const std::string& name, Output x, const Pool1dAttributes& attributes = {});
Output avg_pool1d(Graph& graph, const std::string& name, Output x, const Pool1dAttributes& attributes = {});

}  // namespace miniqat::layers
