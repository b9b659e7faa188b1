#pragma once

#include "models/models.h"

namespace miniqat::models {

/// MobileNet (Howard et al. 2017, arXiv:1704.04861, table 1): conv 3x3x32, then 13 blocks of a 3x3 depthwise and a 1x1
/// convolution; mean over the picture, dense `outputs`. Each convolution has batch norm (epsilon 0.001) and Relu6, as
/// in the authors' code. At width 1 with 224x224 pixels and 1000 classes 4.2 M parameters and 569 M multiply-adds. For
/// images of at most 64 pixels a side the first stride is 1 instead of 2, so that CIFAR's 32x32 end as 2x2. Nodes live
/// under conv0, block1/depthwise, block1/pointwise, ..., block13/pointwise, pool, fc.
Output mobilenet_v1(Graph& graph, Output images, const ModelOptions& options = {});

/// The network of MLPerf Tiny's visual wake words (Banbury et al. 2021, arXiv:2106.07597; the benchmark's
/// `visual_wake_words/vww_model.py`): mobilenet_v1 with a quarter of its channels and Relu instead of Relu6. A width of
/// 1 is that quarter. With 96x96 pixels and 2 classes 221,794 parameters as Keras counts them, 213,586 trained, and
/// 7,489,664 multiply-adds. Nodes have the names of mobilenet_v1's.
Output visual_wake_words(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
