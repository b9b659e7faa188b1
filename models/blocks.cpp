#include "models/blocks.h"

#include <algorithm>
#include <cmath>

namespace miniqat::models {
namespace {

Output affine(Graph& graph, const std::string& name, Output x, std::int64_t outputs, const Initializer& initializer) {
  const Output weights = variable(graph, name + "/weights", {x.shape()[1], outputs}, initializer);
  const Output product = layers::matmul(graph, name + "/MatMul", x, weights);
  const Output biases = variable(graph, name + "/biases", {outputs}, Initializer::constant(0));
  return layers::bias_add(graph, name + "/BiasAdd", product, biases);
}

}  // namespace

Output conv_relu(Graph& graph, const std::string& name, Output x, const ConvBlock& block) {
  const Shape filter = {block.kernel, block.kernel, x.shape()[-1], block.channels};
  const Output weights = variable(graph, name + "/weights", filter, Initializer::he_normal());
  const Output conv = layers::conv2d(graph, name + "/Conv2D", x, weights,
                                     {.strides = {block.stride, block.stride}, .padding = block.padding});
  const Output biases = variable(graph, name + "/biases", {block.channels}, Initializer::constant(0));
  return layers::relu(graph, name + "/Relu", layers::bias_add(graph, name + "/BiasAdd", conv, biases));
}

Output dense(Graph& graph, const std::string& name, Output x, std::int64_t outputs) {
  return affine(graph, name, x, outputs, Initializer::glorot_uniform());
}

Output dense_relu(Graph& graph, const std::string& name, Output x, std::int64_t outputs) {
  return layers::relu(graph, name + "/Relu", affine(graph, name, x, outputs, Initializer::he_normal()));
}

Output max_pool(Graph& graph, const std::string& name, Output x) {
  return layers::max_pool(graph, name + "/MaxPool", x, {.window = {2, 2}, .strides = {2, 2}});
}

Output flatten(Graph& graph, const std::string& name, Output x) {
  return layers::reshape(graph, name, x, {.shape = {-1, x.shape().elements() / x.shape()[0]}});
}

std::int64_t scaled(std::int64_t channels, double width) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(channels) * width));
}

}  // namespace miniqat::models
