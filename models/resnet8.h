#pragma once

#include "models/models.h"

namespace miniqat::models {

/// The ResNet-8 of MLPerf Tiny's image classification (Banbury et al. 2021, arXiv:2106.07597; the benchmark's
/// `image_classification/keras_model.py`): conv 3x3x16, three stages of one block of two 3x3 convolutions with 16, 32
/// and 64 channels, the second and the third with stride 2; mean over the picture, dense `outputs`. Each of these
/// convolutions has batch norm (epsilon 0.001) and Relu, the second one of a block has its Relu after the Add. Where
/// channels change the shortcut is a 1x1 convolution with stride 2 and a bias, without batch norm. With 32x32 pixels
/// and 10 classes 78,666 parameters as Keras counts them, 77,946 trained, and 12,501,632 multiply-adds. Nodes live
/// under conv0, stage1/conv1, stage1/conv2, stage2/conv1, ..., stage2/shortcut, ..., pool, fc.
Output resnet8(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
