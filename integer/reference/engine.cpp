#include "integer/reference/engine.h"

#include "core/platform/interruption.h"
#include "core/tensors/tensor.h"
#include "core/text/error.h"
#include "integer/model.h"

namespace miniqat::integer::reference {

Tensor run_operation(const Model& model, const Operation& operation, std::span<const Tensor> inputs) {
  if (inputs.size() != operation.inputs.size())
    fail("[", type_name(operation.action), " \"", operation.name, "\"] takes ",
         counted(operation.inputs.size(), "input"), ", not ", inputs.size());
  std::vector<Operand> operands;
  std::int64_t n = 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = model.input_of(operation, i);
    const std::int64_t here = batch_size(inputs[i], info);
    if (i > 0 && here != n) fail("batches of ", n, " and ", here, " examples");
    n = here;
    operands.push_back({.integers = inputs[i].values<std::uint8_t>(), .shape = info.shape, .grid = info.grid});
  }
  const TensorInfo& info = model.output_of(operation);
  Tensor output(batch_shape(n, info.shape), DType::kUInt8);
  const Result result = {.n = n,
                         .integers = output.values<std::uint8_t>(),
                         .shape = info.shape,
                         .grid = info.grid,
                         .clamp = operation.clamp};
  std::visit([&](const auto& action) { action.apply(operands, result); }, operation.action);
  return output;
}

std::vector<Tensor> run(const Model& model, const Tensor& images) {
  batch_size(images, model.tensor(model.input));
  std::vector<Tensor> tensors(model.tensors.size());
  tensors[model.input] = images;
  for (const Operation& operation : model.operations) {
    interruption_point();
    std::vector<Tensor> inputs;
    for (const int i : operation.inputs) inputs.push_back(tensors[i]);
    tensors[operation.output] = run_operation(model, operation, inputs);
  }
  return tensors;
}

}  // namespace miniqat::integer::reference
