#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"

namespace miniqat::testing {

/// A float network with the values of its variables. It takes one input.
struct FloatNetwork {
  Graph graph;
  NamedTensors variables;
  std::string name = {};

  Output input() const;
  std::int64_t batch() const { return input().shape()[0]; }
  /// Numbers from -1 to 1, the same in each call.
  Tensor random_input() const;
  /// The first output of random_input().
  Tensor results();
};

/// Each variable of the graph gets random numbers: variances from 0.5 to 2, weights as they begin, others from -0.5 to
/// 0.5.
FloatNetwork with_random_variables(Graph graph, std::uint64_t seed);

/// A network of models/ on two of its published images, at the smallest size that it has, in evaluation.
FloatNetwork float_model(const std::string& name);

/// A small network for every op and layout that exporters::onnx_float() writes.
std::vector<FloatNetwork> single_ops();

/// So many networks of random layers.
std::vector<FloatNetwork> random_float_networks(int count);

/// So many chains of ops of all kinds in any order, among them those that optimizers of graphs merge: a Pad before a
/// pool or a convolution, with ops that do nothing between, of numbers below 0.
std::vector<FloatNetwork> random_float_chains(int count);

/// The largest difference of two tensors of one shape, in parts of the largest number of the first.
double relative_difference(const Tensor& expected, const Tensor& found);

}  // namespace miniqat::testing
