#pragma once

#include "core/graph/graph.h"
#include "core/tensors/shape.h"
#include "core/tensors/window.h"
#include "layers/space_to_batch.h"

namespace miniqat::quantize {

/// The window of a Conv2D or DepthwiseConv2d node over its input.
Window2d convolution_window(const Node& layer);

/// SpaceToBatchND, a convolution of the blocks, BatchToSpaceND: as one dilated convolution.
struct Atrous {
  /// [n, h, w, c] before the SpaceToBatchND.
  Shape images;
  layers::SpaceToBatchAttributes to_batch;
  /// The convolution's window over the blocks.
  Window2d window = {};
};

/// The window over the images themselves. Throws Error (to be completed with the node's name) where there is none:
/// strides other than 1, other blocks than the images were dealt out to, crops beyond the paddings.
Window2d dilated_window(const Atrous& atrous, const layers::BatchToSpaceAttributes& to_space);

}  // namespace miniqat::quantize
