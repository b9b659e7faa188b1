#include "tests/quantize/scale_shift_net.h"

#include "layers/layers.h"
#include "tests/quantize/convert/trained_integers.h"

namespace miniqat::testing {

Graph scale_shift_net() {
  Graph graph;
  const auto number = [&](const std::string& name, double value) { return layers::constant(graph, name, {}, {value}); };
  const auto channels = [&](const std::string& name, const Shape& shape, double mean, double spread) {
    return layers::variable(graph, name, shape,
                            {.kind = Initializer::Kind::kTruncatedNormal, .mean = mean, .stddev = spread});
  };
  Output x = layers::placeholder(graph, "images", {4, 8, 8, 3});
  x = layers::div(graph, "in/Div", x, number("in/range", 1.5));
  x = layers::sub(graph, "in/Sub", x, channels("in/mean", {1, 1, 1, 3}, 0.1, 0.3));
  x = layers::mul(graph, "in/Mul", x, channels("in/factors", {3}, 1, 0.4));
  x = layers::relu(graph, "stem/Relu", conv_bias(graph, "stem", x, 3, 16));
  x = layers::mul(graph, "scale/Mul", x, channels("scale/factors", {16}, 0, 1));
  x = layers::bias_add(graph, "scale/BiasAdd", x, channels("scale/biases", {16}, 0.2, 0.2));
  x = layers::relu6(graph, "scale/Relu6", x);
  x = layers::mul(graph, "half/Mul", number("half/number", 0.5), conv_bias(graph, "project", x, 1, 6));
  x = layers::clip(graph, "Clip", x, {.low = -0.2, .high = 0.3});
  x = layers::mean(graph, "Mean", x, {.axes = {1, 2}});
  x = layers::sub(graph, "rows/Sub", number("rows/one", 1), x);
  x = layers::add(graph, "rows/Add", x, channels("rows/offsets", {6}, 0, 0.3));
  x = layers::matmul(graph, "dense/MatMul", x, layers::variable(graph, "dense/weights", {6, 5}));
  graph.set_outputs({x});
  return graph;
}

}  // namespace miniqat::testing
