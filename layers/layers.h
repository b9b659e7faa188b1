#pragma once

// All ops and their builders: include this one to build a model.

#include "core/graph/source_ops.h"
#include "layers/activations.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/losses.h"
#include "layers/matmul.h"
#include "layers/mean.h"
#include "layers/parts.h"
#include "layers/pool.h"
#include "layers/reshape.h"
#include "layers/sequences.h"
#include "layers/softmax.h"
#include "layers/space_to_batch.h"

namespace miniqat::layers {

using miniqat::constant;
using miniqat::placeholder;
using miniqat::variable;

template <class... Ops>
struct OpList {};

/// All of them: what graph JSON knows.
using AllOps = OpList<Conv2d, DepthwiseConv2d, MatMul, BiasAdd, Add, Sub, Mul, Div, Rsqrt, Reciprocal, Square, Relu,
                      Relu6, Sigmoid, HardSigmoid, HardSwish, LeakyRelu, Clip, Identity, Softmax, Dropout, BatchNorm,
                      Reshape, Concat, Pad, Slice, SpaceToBatchNd, BatchToSpaceNd, MaxPool, AvgPool, Mean,
                      SoftmaxCrossEntropy, MeanSquaredError, Huber, SigmoidCrossEntropy>;

/// Makes the ops of core and layers known to graph JSON. Idempotent.
void register_ops();

}  // namespace miniqat::layers
