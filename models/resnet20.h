#pragma once

#include "models/models.h"

namespace miniqat::models {

/// The ResNet-20 for CIFAR-10 (He et al. 2015, arXiv:1512.03385, section 4.2): conv 3x3x16, three stages of three
/// blocks of two 3x3 convolutions with 16, 32 and 64 channels; mean over the picture, dense `outputs`. Each convolution
/// has batch norm (epsilon 1e-5) and Relu; the second one of a block has its Relu after the Add. Shortcuts have no
/// parameters (option A): where a stage begins they take every second pixel and pad the new channels with zeros, half
/// on either side. With 32x32 pixels and 10 classes 0.27 M parameters and 41 M multiply-adds. Nodes live under conv0,
/// stage1/block1/conv1, stage1/block1/conv2, ..., stage3/block3/conv2, pool, fc.
Output resnet20(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
