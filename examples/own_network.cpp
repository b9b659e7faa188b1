// A small residual network of one's own, written as graph JSON:
//
//   own_network residual.json && miniqat train --model residual.json --float --epochs 1 --out float
//
// docs/own-network.md has the same network as JSON, in Python and in PyTorch.

#include <cstdio>
#include <string>

#include "core/graph/graph_json.h"
#include "layers/layers.h"

using namespace miniqat;

namespace {

/// 3x3 filters with biases. x: [n, h, w, c] -> [n, h, w, channels].
Output convolution(Graph& graph, const std::string& name, Output x, std::int64_t channels) {
  const Shape shape = {3, 3, x.shape().channels(), channels};
  const Output filters = layers::variable(graph, name + "/weights", shape, Initializer::he_normal());
  const Output y = layers::conv2d(graph, name + "/Conv2D", x, filters);
  return layers::bias_add(graph, name + "/BiasAdd", y, layers::variable(graph, name + "/biases", {channels}));
}

/// images: [n, 28, 28, 1] -> logits [n, 10].
Output residual(Graph& graph, Output images) {
  Output x = layers::relu(graph, "stem/Relu", convolution(graph, "stem", images, 16));
  x = layers::max_pool(graph, "pool1/MaxPool", x, {.strides = {2, 2}});

  Output y = layers::relu(graph, "block1/Relu", convolution(graph, "block1", x, 16));
  y = convolution(graph, "block2", y, 16);
  x = layers::relu(graph, "block2/Relu", layers::add(graph, "block2/Add", y, x));

  x = layers::max_pool(graph, "pool2/MaxPool", x, {.strides = {2, 2}});
  x = layers::reshape(graph, "flatten/Reshape", x, {.shape = {-1, 784}});
  x = layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {784, 10}));
  return layers::bias_add(graph, "fc/BiasAdd", x, layers::variable(graph, "fc/biases", {10}));
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: own_network FILE.json\n", stderr);
    return 2;
  }
  // Graph JSON reads and writes the ops that it knows.
  layers::register_ops();
  Graph graph;
  graph.set_outputs({residual(graph, layers::placeholder(graph, "images", {128, 28, 28, 1}))});
  write_graph(words[1], graph);
}
