#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "layers/layers.h"
#include "quantize/quantize.h"

namespace miniqat::testing {

using Names = std::vector<std::string>;

/// Images, filters (rows and columns) and channels. What trains starts its vectors at random numbers.
struct ToySizes {
  Shape images = {1, 4, 4, 2};
  std::int64_t filter = 1;
  std::int64_t channels = 2;
  bool trains = false;
};

/// A graph of small layers in which every image has the same shape, so that anything can be added to anything.
struct ToyGraph {
  Graph graph;
  ToySizes sizes = {};

  ToyGraph() = default;
  /// Made of chains, between semicolons: "images | conv_relu a | Add sum images | MaxPool pool; a/Relu | conv b".
  ///
  /// A chain begins with a tensor. Each of its steps takes the tensor before it, and is the type of an op (of default
  /// attributes), the node's name, and further inputs. Some steps are more than that:
  ///   conv, conv_bias, conv_relu SCOPE [WEIGHTS]   the functions below
  ///   depthwise SCOPE; dense SCOPE CHANNELS        SCOPE/DepthwiseConv2d, SCOPE/MatMul with SCOPE/weights
  ///   bias SCOPE; batch_norm SCOPE [OTHER]         the functions below; with the moving statistics of OTHER
  ///   still_batch_norm SCOPE                       one that does not train
  ///   MaxPool, AvgPool NAME [1]                    windows of 2x2, or of one pixel
  ///   Mean, Pad, SpaceToBatchND, BatchToSpaceND NAME   over images: rows and columns, one pixel around, blocks of 2x2
  ///   PadChannels NAME                             three channels of zeros behind the others
  ///   Reshape NAME EXTENT...; FakeQuant NAME BITS; MatMulTransposed NAME WEIGHTS
  ///   loss                                         SoftmaxCrossEntropy with the Placeholder labels
  ///   output                                       the tensor before it becomes an output of the graph
  /// A tensor is that of a node, by its name, or a new one: "[2]v" a Variable, "=[2]c" a Constant, "?[2,3]x" a
  /// Placeholder, and any other name a Placeholder of images.
  explicit ToyGraph(const std::string& chains, const ToySizes& sizes = {});

  Output images(const std::string& name = "images") { return layers::placeholder(graph, name, sizes.images); }
  Output filter(const std::string& name) { return layers::variable(graph, name, {1, 1, 2, 2}); }
  Output vector(const std::string& name, std::int64_t size = 2) { return layers::variable(graph, name, {size}); }

  /// `scope`/weights and `scope`/Conv2D.
  Output conv(const std::string& scope, Output x) {
    const Shape shape = {sizes.filter, sizes.filter, x.shape().channels(), sizes.channels};
    return conv(scope, x, layers::variable(graph, scope + "/weights", shape));
  }
  Output conv(const std::string& scope, Output x, Output weights) {
    return layers::conv2d(graph, scope + "/Conv2D", x, weights);
  }
  /// The same with `scope`/biases and `scope`/BiasAdd.
  Output conv_bias(const std::string& scope, Output x) { return bias(scope, conv(scope, x)); }
  Output bias(const std::string& scope, Output x) {
    const Output biases = layers::variable(graph, scope + "/biases", {x.shape().channels()}, start_at(0));
    return layers::bias_add(graph, scope + "/BiasAdd", x, biases);
  }
  /// The same with `scope`/Relu.
  Output conv_relu(const std::string& scope, Output x) {
    return layers::relu(graph, scope + "/Relu", conv_bias(scope, x));
  }
  Output batch_norm(const std::string& scope, Output x, bool is_training = true, const std::string& other = "") {
    const Shape channels = {x.shape().channels()};
    const auto variable = [&](const std::string& name, const Initializer& start, bool trainable = true) {
      return layers::variable(graph, scope + name, channels, start, trainable);
    };
    const auto moving = [&](const std::string& name, double value) {
      const Node* shared = graph.find(other + name);
      return shared ? shared->output() : variable(name, start_at(value, Initializer::constant(value)), false);
    };
    const Output gamma = variable("/gamma", start_at(1)), beta = variable("/beta", start_at(0));
    return layers::batch_norm(graph, scope + "/BatchNorm", x, gamma, beta, moving("/moving_mean", 0),
                              moving("/moving_variance", 1), {.is_training = is_training});
  }

  /// The name of what a node takes.
  std::string input(const std::string& node, int i = 0) const { return graph.at(node).input(i).name(); }
  const quantize::FakeQuantAttributes& quantizer(const std::string& name) const {
    return *graph.at(name).as<quantize::FakeQuant>();
  }
  double initial(const std::string& variable) const { return graph.at(variable).as<Variable>()->initializer.value; }

 private:
  Initializer start_at(double mean, const Initializer& otherwise = {}) const {
    return sizes.trains ? Initializer{.kind = Initializer::Kind::kTruncatedNormal, .mean = mean, .stddev = 0.3}
                        : otherwise;
  }
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
