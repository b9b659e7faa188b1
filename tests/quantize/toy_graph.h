#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "layers/layers.h"
#include "quantize/quantize.h"

namespace miniqat::testing {

using Names = std::vector<std::string>;

/// A graph of small layers in which every image is [1, 4, 4, 2], so that anything can be added to anything.
struct ToyGraph {
  Graph graph;

  ToyGraph() = default;
  /// Made of chains, between semicolons: "images | conv_relu a | Add sum images | MaxPool pool; a/Relu | conv b".
  ///
  /// A chain begins with a tensor. Each of its steps takes the tensor before it, and is the type of an op (of default
  /// attributes), the node's name, and further inputs. Some steps are more than that:
  ///   conv, conv_bias, conv_relu SCOPE [WEIGHTS]   the functions below
  ///   depthwise SCOPE; dense SCOPE CHANNELS        SCOPE/DepthwiseConv2d, SCOPE/MatMul with SCOPE/weights
  ///   bias, batch_norm SCOPE                       the functions below
  ///   MaxPool, AvgPool NAME [1]                    windows of 2x2, or of one pixel
  ///   Mean, Pad, SpaceToBatchND, BatchToSpaceND NAME   over images: rows and columns, one pixel around, blocks of 2x2
  ///   Reshape NAME EXTENT...; FakeQuant NAME BITS; MatMulTransposed NAME WEIGHTS
  ///   loss                                         SoftmaxCrossEntropy with the Placeholder labels
  ///   output                                       the tensor before it becomes an output of the graph
  /// A tensor is that of a node, by its name, or a new one: "[2]v" a Variable, "=[2]c" a Constant, "?[2,3]x" a
  /// Placeholder, and any other name a Placeholder of images.
  explicit ToyGraph(const std::string& chains);

  Output images(const std::string& name = "images") { return layers::placeholder(graph, name, {1, 4, 4, 2}); }
  Output filter(const std::string& name) { return layers::variable(graph, name, {1, 1, 2, 2}); }
  Output vector(const std::string& name, std::int64_t size = 2) { return layers::variable(graph, name, {size}); }

  /// `scope`/weights and `scope`/Conv2D.
  Output conv(const std::string& scope, Output x) { return conv(scope, x, filter(scope + "/weights")); }
  Output conv(const std::string& scope, Output x, Output weights) {
    return layers::conv2d(graph, scope + "/Conv2D", x, weights);
  }
  /// The same with `scope`/biases and `scope`/BiasAdd.
  Output conv_bias(const std::string& scope, Output x) { return bias(scope, conv(scope, x)); }
  Output bias(const std::string& scope, Output x) {
    return layers::bias_add(graph, scope + "/BiasAdd", x, vector(scope + "/biases", x.shape().channels()));
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

 private:
  Output tensor(const std::string& text);
  Output layer(Output x, const Names& words);
  Output step(Output x, const Names& words);
};

/// The quantizer of a graph that a line like one of these is about, in the form of that line: equal to the line where
/// all that it says is true.
///   a/act_quant                                      there is such a quantizer,
///   a/Relu > a/act_quant > pool b/Conv2D output      on that tensor, and these read it ("b/Conv2D:1": as input 1),
///   a/act_quant: 8 moving_average symmetric from=-6  and these words are among its settings (settings_of).
std::string described(const Graph& graph, const std::string& line);
Names described(const Graph& graph, const Names& lines);
/// The name of the quantizer of a line.
std::string quantizer_in(const std::string& line);

}  // namespace miniqat::testing
