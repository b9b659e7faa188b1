#include "training/verify/layer_comparison.h"

#include <algorithm>
#include <cstdlib>

#include "integer/reference/engine.h"

namespace miniqat::training {
namespace {

/// A model of one operation with one input.
integer::Model alone(const integer::Model& model, integer::Operation operation) {
  integer::Model single{.name = operation.name,
                        .tensors = {model.input_of(operation), model.output_of(operation)},
                        .input = 0,
                        .output = 1};
  operation.inputs = {0};
  operation.output = 1;
  single.operations.push_back(std::move(operation));
  return single;
}

}  // namespace

void Agreement::add(const Tensor& a, const Tensor& b, std::int64_t valid) {
  const std::int64_t elements = a.elements() / a.shape()[0] * valid;
  const std::uint8_t* x = a.data<std::uint8_t>();
  const std::uint8_t* y = b.data<std::uint8_t>();
  for (std::int64_t i = 0; i < elements; ++i) {
    equal += x[i] == y[i] ? 1 : 0;
    largest = std::max(largest, std::abs(x[i] - y[i]));
  }
  count += elements;
}

LayerComparer::LayerComparer(const integer::Model& model) : model_(model) {
  for (const integer::Operation& operation : model.operations) {
    engines_.push_back(operation.inputs.size() == 1 ? std::make_unique<integer::Engine>(alone(model, operation))
                                                    : nullptr);
    layers_.push_back({.operation = operation.name,
                       .type = std::string(type_name(operation.action)),
                       .tensor = model.output_of(operation).name,
                       .alone = {},
                       .end_to_end = {}});
  }
}

LayerComparer::~LayerComparer() = default;

Tensor LayerComparer::run_alone(std::size_t i, const std::vector<Tensor>& simulated) {
  const integer::Operation& operation = model_.operations[i];
  if (engines_[i] != nullptr) return engines_[i]->run(simulated[operation.inputs[0]]);
  std::vector<Tensor> inputs;
  for (const int input : operation.inputs) inputs.push_back(simulated[input]);
  return integer::reference::run_operation(model_, operation, inputs);
}

void LayerComparer::add(std::vector<Tensor> simulated, const std::vector<Tensor>& integers, std::int64_t valid) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int output = model_.operations[i].output;
    const Tensor made = run_alone(i, simulated);
    if (!simulated[output].defined()) simulated[output] = made;
    layers_[i].alone.add(made, simulated[output], valid);
    layers_[i].end_to_end.add(integers[output], simulated[output], valid);
  }
}

Tensor integers_of(const Tensor& values, const integer::Grid& grid) {
  Tensor integers(values.shape(), DType::kUInt8);
  std::ranges::transform(values.values<float>(), integers.data<std::uint8_t>(),
                         [&grid](float value) { return integer::quantize(grid, value); });
  return integers;
}

}  // namespace miniqat::training
