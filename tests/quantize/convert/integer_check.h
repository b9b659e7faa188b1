#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "integer/model.h"

namespace miniqat::testing {

/// How an operation of an integer model, given the integers of the simulated tensors, compares with the evaluation
/// graph's own result.
struct OperationCheck {
  std::string operation;
  std::int64_t elements = 0;
  std::int64_t different = 0;
  /// In steps.
  int largest = 0;
  /// How many steps the rounding of a layer's biases may make: half an integer times the largest multiplier.
  double bias_steps = 0;
};

/// Runs the evaluation graph on the images that the model's input integers [n, ...] stand for, and each operation of
/// the model on the quantized tensors that the graph has under the names of its inputs.
std::vector<OperationCheck> check_operations(const Graph& graph, const NamedTensors& variables,
                                             const integer::Model& model, const Tensor& images);

struct Agreement {
  std::int64_t elements = 0;
  std::int64_t different = 0;
};

/// Expects that nothing is more than one step apart but for what biases explain, and that hardly anything is apart.
/// Returns the sum over all operations.
Agreement expect_faithful(const Graph& graph, const NamedTensors& variables, const integer::Model& model,
                          const Tensor& images);

/// The largest difference in steps between the whole model's output and that of the graph.
int output_difference(const Graph& graph, const NamedTensors& variables, const integer::Model& model,
                      const Tensor& images);

/// Random integers for the model's input, as many examples as the placeholder takes.
Tensor images_for(const Graph& graph, const integer::Model& model, std::uint64_t seed);

}  // namespace miniqat::testing
