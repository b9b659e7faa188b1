#pragma once

#include "models/models.h"

namespace miniqat::models {

/// The LeNet of TensorFlow's MNIST tutorial: conv 5x5x32 SAME, Relu, max pool 2, conv 5x5x64 SAME, Relu, max pool 2,
/// dense 1024, Relu, dropout 0.5, dense `outputs`. Nodes live under conv1, pool1, conv2, pool2, fc1, dropout, fc2.
Output lenet(Graph& graph, Output images, const ModelOptions& options = {});

/// lenet with batch norms instead of biases after its convolutions, before their Relus.
Output lenet_bn(Graph& graph, Output images, const ModelOptions& options = {});

/// LeNet-5 after LeCun et al. 1998 with Relu and max pools: conv 5x5x6 SAME, pool 2, conv 5x5x16 VALID, pool 2, dense
/// 120, 84, `outputs`.
Output lenet5(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
