#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "layers/layers.h"
#include "quantize/quantize.h"

namespace miniqat::testing {

/// A graph of small layers in which every image is [1, 4, 4, 2], so that anything can be added to anything.
struct ToyGraph {
  Graph graph;

  Output images(const std::string& name = "images") { return layers::placeholder(graph, name, {1, 4, 4, 2}); }
  Output filter(const std::string& name) { return layers::variable(graph, name, {1, 1, 2, 2}); }
  Output vector(const std::string& name) { return layers::variable(graph, name, {2}); }

  /// `scope`/weights and `scope`/Conv2D.
  Output conv(const std::string& scope, Output x) { return conv(scope, x, filter(scope + "/weights")); }
  Output conv(const std::string& scope, Output x, Output weights) {
    return layers::conv2d(graph, scope + "/Conv2D", x, weights);
  }
  /// The same with `scope`/biases and `scope`/BiasAdd.
  Output conv_bias(const std::string& scope, Output x) { return bias(scope, conv(scope, x)); }
  Output bias(const std::string& scope, Output x) {
    return layers::bias_add(graph, scope + "/BiasAdd", x, vector(scope + "/biases"));
  }
  /// The same with `scope`/Relu.
  Output conv_relu(const std::string& scope, Output x) {
    return layers::relu(graph, scope + "/Relu", conv_bias(scope, x));
  }
  Output batch_norm(const std::string& scope, Output x) {
    const Output mean = layers::variable(graph, scope + "/moving_mean", {2}, Initializer::constant(0), false);
    const Output variance = layers::variable(graph, scope + "/moving_variance", {2}, Initializer::constant(1), false);
    return layers::batch_norm(graph, scope + "/BatchNorm", x, vector(scope + "/gamma"), vector(scope + "/beta"), mean,
                              variance);
  }

  /// The name of what a node takes.
  std::string input(const std::string& node, int i = 0) const { return graph.at(node).input(i).name(); }
  const quantize::FakeQuantAttributes& quantizer(const std::string& name) const {
    return *graph.at(name).as<quantize::FakeQuant>();
  }
  double initial(const std::string& variable) const { return graph.at(variable).as<Variable>()->initializer.value; }
};

using Names = std::vector<std::string>;

}  // namespace miniqat::testing
