#include "tests/quantize/convert/integer_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/engine/session.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"

namespace miniqat::testing {
namespace {

using integer::Grid;
using integer::Model;
using integer::Operation;

/// What feeds the model's input: itself, or what its quantizer reads.
Output feed_of(const Graph& graph, const Model& model) {
  const Node& node = graph.at(model.tensor(model.input).name);
  return node.type() == "Placeholder" ? node.output() : node.input(0);
}

bool is_in(const Graph& graph, const std::string& tensor) { return graph.find(tensor) != nullptr; }

Tensor quantized(const Grid& grid, const Tensor& real) {
  Tensor integers(real.shape(), DType::kUInt8);
  for (std::int64_t i = 0; i < real.elements(); ++i)
    integers.data<std::uint8_t>()[i] = integer::quantize(grid, real.data<float>()[i]);
  return integers;
}

/// The integers of the simulated tensors in the order of Model::tensors; undefined where the graph has no such tensor.
std::vector<Tensor> simulate(const Graph& graph, const NamedTensors& variables, const Model& model,
                             const Tensor& images) {
  Graph own = graph.clone();
  const Output input = feed_of(own, model);
  Tensor real(input.shape());
  for (std::int64_t i = 0; i < real.elements(); ++i)
    real.data<float>()[i] = integer::dequantize(model.tensor(model.input).grid, images.data<std::uint8_t>()[i]);
  RunRequest request;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    if (!is_in(graph, model.tensors[i].name)) continue;
    request.fetches.push_back(own.at(model.tensors[i].name).output());
    places.push_back(i);
  }
  Session session(own);
  session.restore({.tensors = variables, .metadata = {}}, Session::Restore::kVariables, "test");
  const std::vector<Tensor> fetched = session.run(request, {{input, real}}).fetched;
  std::vector<Tensor> integers(model.tensors.size());
  for (std::size_t k = 0; k < places.size(); ++k)
    integers[places[k]] = quantized(model.tensors[places[k]].grid, fetched[k]);
  return integers;
}

double bias_steps(const Operation& operation) {
  const auto* layer = std::get_if<integer::Layer>(&operation.action);
  double most = 0;
  if (layer)
    for (const integer::Multiplier& multiplier : layer->multipliers) most = std::max(most, multiplier.real() / 2);
  return most;
}

OperationCheck compare(const Operation& operation, const Tensor& expected, const Tensor& found) {
  OperationCheck check = {.operation = operation.name, .bias_steps = bias_steps(operation)};
  check.elements = expected.elements();
  for (std::int64_t i = 0; i < check.elements; ++i) {
    const int steps = std::abs(expected.data<std::uint8_t>()[i] - found.data<std::uint8_t>()[i]);
    check.different += steps > 0 ? 1 : 0;
    check.largest = std::max(check.largest, steps);
  }
  return check;
}

}  // namespace

std::vector<OperationCheck> check_operations(const Graph& graph, const NamedTensors& variables, const Model& model,
                                             const Tensor& images) {
  std::vector<Tensor> tensors = simulate(graph, variables, model, images);
  std::vector<OperationCheck> checks;
  for (const Operation& operation : model.operations) {
    std::vector<Tensor> inputs;
    for (const int i : operation.inputs) inputs.push_back(tensors[i]);
    const Tensor found = integer::reference::run_operation(model, operation, inputs);
    Tensor& expected = tensors[operation.output];
    if (expected.defined())
      checks.push_back(compare(operation, expected, found));
    else
      expected = found;
  }
  return checks;
}

Agreement expect_faithful(const Graph& graph, const NamedTensors& variables, const Model& model, const Tensor& images) {
  Agreement all;
  for (const OperationCheck& check : check_operations(graph, variables, model, images)) {
    const std::string what =
        concat(check.operation, ": ", check.different, " of ", check.elements, " differ, by up to ", check.largest,
               "; biases explain ", check.bias_steps, " steps");
    EXPECT_LE(check.largest, 1 + std::floor(check.bias_steps)) << what;
    const double share = static_cast<double>(check.different) / static_cast<double>(check.elements);
    // Fewer say nothing: one channel that lies on a tie, in all examples.
    if (check.elements >= 1000) {
      EXPECT_LE(share, 0.002 + check.bias_steps) << what;
    }
    all.elements += check.elements;
    all.different += check.different;
  }
  return all;
}

int output_difference(const Graph& graph, const NamedTensors& variables, const Model& model, const Tensor& images) {
  const Tensor expected = simulate(graph, variables, model, images)[model.output];
  const Tensor found = integer::reference::run(model, images)[model.output];
  return compare({}, expected, found).largest;
}

Tensor images_for(const Graph& graph, const Model& model, std::uint64_t seed) {
  Random random(seed);
  return random_images(random, model, feed_of(graph, model).shape()[0]);
}

}  // namespace miniqat::testing
