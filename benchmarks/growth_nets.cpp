#include "benchmarks/growth_nets.h"

#include <functional>
#include <string>

#include "core/error.h"
#include "layers/layers.h"

namespace miniqat::benchmarks {

namespace {

/// One number for each of the layer's channels.
struct BatchNormVariables {
  Output gamma, beta, mean, variance;
};

using Normalise = std::function<Output(Graph&, const std::string& scope, Output x, const BatchNormVariables&)>;

Graph chain_of(int layers, const Normalise& normalise) {
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
    x = layers::relu(graph, scope + "Relu", normalise(graph, scope, x, {gamma, beta, mean, variance}));
  }
  graph.set_outputs({x});
  return graph;
}

}  // namespace

Graph chain_of_layers(int layers) {
  return chain_of(layers, [](Graph& graph, const std::string& scope, Output x, const BatchNormVariables& v) {
    return layers::batch_norm(graph, scope + "BatchNorm", x, v.gamma, v.beta, v.mean, v.variance);
  });
}

Graph chain_of_spelled_out_layers(int layers) {
  return chain_of(layers, [](Graph& graph, const std::string& scope, Output x, const BatchNormVariables& v) {
    const Output epsilon = layers::constant(graph, scope + "epsilon", {}, {0.001});
    const Output variance = layers::add(graph, scope + "variance", v.variance, epsilon);
    const Output scale = layers::mul(graph, scope + "scale", layers::rsqrt(graph, scope + "Rsqrt", variance), v.gamma);
    const Output centred = layers::sub(graph, scope + "Sub", x, v.mean);
    return layers::add(graph, scope + "Add", layers::mul(graph, scope + "Mul", centred, scale), v.beta);
  });
}

}  // namespace miniqat::benchmarks
