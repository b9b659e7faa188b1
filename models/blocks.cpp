#include "models/blocks.h"

#include <algorithm>
#include <cmath>

namespace miniqat::models {
namespace {

Output product_of(Graph& graph, const std::string& name, Output x, std::int64_t outputs,
                  const Initializer& initializer) {
  const Output weights = variable(graph, name + "/weights", {x.shape()[1], outputs}, initializer);
  return layers::matmul(graph, name + "/MatMul", x, weights);
}

Output affine(Graph& graph, const std::string& name, Output x, std::int64_t outputs, const Initializer& initializer) {
  const Output product = product_of(graph, name, x, outputs, initializer);
  const Output biases = variable(graph, name + "/biases", {outputs}, Initializer::constant(0));
  return layers::bias_add(graph, name + "/BiasAdd", product, biases);
}

Output normalise(Graph& graph, const std::string& name, Output x, const Normalisation& normalisation) {
  const Shape channels = {x.shape().channels()};
  const std::string norm = name + "/BatchNorm";
  const Output gamma = variable(graph, norm + "/gamma", channels, Initializer::constant(1));
  const Output beta = variable(graph, norm + "/beta", channels, Initializer::constant(0));
  const Output mean = variable(graph, norm + "/moving_mean", channels, Initializer::constant(0), false);
  const Output variance = variable(graph, norm + "/moving_variance", channels, Initializer::constant(1), false);
  const Output y = layers::batch_norm(graph, norm, x, gamma, beta, mean, variance, normalisation.batch_norm);
  switch (normalisation.activation) {
    case Activation::kRelu:
      return layers::relu(graph, name + "/Relu", y);
    case Activation::kRelu6:
      return layers::relu6(graph, name + "/Relu6", y);
    case Activation::kNone:
      break;
  }
  return y;
}

Output conv_of(Graph& graph, const std::string& name, Output x, const ConvBlock& block) {
  const Shape filter = {block.kernel.rows, block.kernel.columns, x.shape()[-1], block.channels};
  const Output weights = variable(graph, name + "/weights", filter, Initializer::he_normal());
  return layers::conv2d(graph, name + "/Conv2D", x, weights,
                        {.strides = {block.stride, block.stride}, .padding = block.padding});
}

}  // namespace

Output conv_bias(Graph& graph, const std::string& name, Output x, const ConvBlock& block) {
  const Output conv = conv_of(graph, name, x, block);
  const Output biases = variable(graph, name + "/biases", {block.channels}, Initializer::constant(0));
  return layers::bias_add(graph, name + "/BiasAdd", conv, biases);
}

Output conv_relu(Graph& graph, const std::string& name, Output x, const ConvBlock& block) {
  return layers::relu(graph, name + "/Relu", conv_bias(graph, name, x, block));
}

Output conv_norm(Graph& graph, const std::string& name, Output x, const ConvBlock& block,
                 const Normalisation& normalisation) {
  return normalise(graph, name, conv_of(graph, name, x, block), normalisation);
}

Output depthwise(Graph& graph, const std::string& name, Output x, const DepthwiseBlock& block) {
  const auto pixels = static_cast<double>(block.kernel.rows * block.kernel.columns);
  const Output weights = variable(graph, name + "/weights", {block.kernel.rows, block.kernel.columns, x.shape()[-1], 1},
                                  Initializer::he_normal(pixels));
  return layers::depthwise_conv2d(graph, name + "/DepthwiseConv2d", x, weights,
                                  {.strides = {block.stride, block.stride}, .padding = block.padding});
}

Output depthwise_norm(Graph& graph, const std::string& name, Output x, const DepthwiseBlock& block,
                      const Normalisation& normalisation) {
  return normalise(graph, name, depthwise(graph, name, x, block), normalisation);
}

Output global_mean(Graph& graph, const std::string& name, Output x) {
  return layers::mean(graph, name + "/Mean", x, {.axes = {1, 2}});
}

Output dense(Graph& graph, const std::string& name, Output x, std::int64_t outputs) {
  return affine(graph, name, x, outputs, Initializer::glorot_uniform());
}

Output dense_relu(Graph& graph, const std::string& name, Output x, std::int64_t outputs) {
  return layers::relu(graph, name + "/Relu", affine(graph, name, x, outputs, Initializer::he_normal()));
}

Output dense_norm(Graph& graph, const std::string& name, Output x, std::int64_t outputs,
                  const Normalisation& normalisation) {
  return normalise(graph, name, product_of(graph, name, x, outputs, Initializer::he_normal()), normalisation);
}

Output max_pool(Graph& graph, const std::string& name, Output x) {
  return layers::max_pool(graph, name + "/MaxPool", x, {.window = {2, 2}, .strides = {2, 2}});
}

Output flatten(Graph& graph, const std::string& name, Output x) {
  if (x.shape().rank() == 2) return x;
  return layers::reshape(graph, name, x, {.shape = {-1, x.shape().elements() / x.shape()[0]}});
}

std::int64_t scaled(std::int64_t channels, double width) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(channels) * width));
}

std::int64_t first_stride(const Shape& images) {
  constexpr std::int64_t kSmall = 64;
  return std::max(images[1], images[2]) <= kSmall ? 1 : 2;
}

}  // namespace miniqat::models
