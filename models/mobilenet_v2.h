#pragma once

#include "models/models.h"

namespace miniqat::models {

/// MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381, table 2): conv 3x3x32, 17 inverted residual blocks (expand 1x1,
/// depthwise 3x3, project 1x1; an Add around a block that keeps size and channels), conv 1x1x1280; mean over the
/// picture, dense `outputs`. Each convolution has batch norm (epsilon 0.001) and, except for the projections, Relu6. At
/// width 1 with 224x224 pixels and 1000 classes 3.5 M parameters (3.47 M without batch norm's) and 300 M multiply-adds.
/// Channels are rounded to multiples of 8, at least 8 and never below 90% of channels * width; the 1280 grow with a
/// width above 1 and don't shrink below it. For images of at most 64 pixels a side the first stride is 1 instead of 2.
/// Nodes live under conv0, block1/depthwise, block1/project, block2/expand, ..., block17/project, conv1, pool, fc.
Output mobilenet_v2(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
