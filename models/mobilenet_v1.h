#pragma once

#include "models/models.h"

namespace miniqat::models {

/// MobileNet (Howard et al. 2017, arXiv:1704.04861, table 1): conv 3x3x32, then 13 blocks of a 3x3 depthwise and a 1x1
/// convolution; mean over the picture, dense `classes`. Each convolution has batch norm (epsilon 0.001) and Relu6, as
/// in the authors' code. At width 1 with 224x224 pixels and 1000 classes 4.2 M parameters and 569 M multiply-adds. For
/// images of at most 64 pixels a side the first stride is 1 instead of 2, so that CIFAR's 32x32 end as 2x2. Nodes live
/// under conv0, block1/depthwise, block1/pointwise, ..., block13/pointwise, pool, fc.
Output mobilenet_v1(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
