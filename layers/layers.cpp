#include "layers/layers.h"

#include "core/graph/registry.h"

namespace miniqat::layers {

void register_ops() {
  register_source_ops();
  register_op<Conv2d>();
  register_op<DepthwiseConv2d>();
  register_op<MatMul>();
  register_op<BiasAdd>();
  register_op<Add>();
  register_op<Sub>();
  register_op<Mul>();
  register_op<Div>();
  register_op<Rsqrt>();
  register_op<Reciprocal>();
  register_op<Square>();
  register_op<Relu>();
  register_op<Relu6>();
  register_op<Identity>();
  register_op<Softmax>();
  register_op<Dropout>();
  register_op<BatchNorm>();
  register_op<Reshape>();
  register_op<Concat>();
  register_op<Pad>();
  register_op<SpaceToBatchNd>();
  register_op<BatchToSpaceNd>();
  register_op<MaxPool>();
  register_op<AvgPool>();
  register_op<Mean>();
  register_op<SoftmaxCrossEntropy>();
}

}  // namespace miniqat::layers
