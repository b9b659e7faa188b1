#include "benchmarks/growth_nets.h"

#include "core/error.h"
#include "layers/layers.h"

namespace miniqat::benchmarks {

Graph chain_of_layers(int layers) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {1, 2, 2, 1});
  for (int i = 0; i < layers; ++i) {
    const std::string scope = concat("block", i, "/");
    const auto vector = [&](const char* name, double value, bool trainable) {
      return layers::variable(graph, scope + name, {1}, Initializer::constant(value), trainable);
    };
    const Output weights = layers::variable(graph, scope + "weights", {1, 1, 1, 1}, Initializer::constant(1));
    x = layers::conv2d(graph, scope + "Conv2D", x, weights);
    const Output gamma = vector("gamma", 1, true), beta = vector("beta", 0.5, true);
    const Output mean = vector("moving_mean", 0, false), variance = vector("moving_variance", 1, false);
    x = layers::relu(graph, scope + "Relu",
                     layers::batch_norm(graph, scope + "BatchNorm", x, gamma, beta, mean, variance));
  }
  graph.set_outputs({x});
  return graph;
}

}  // namespace miniqat::benchmarks
