#include "core/graph/node_check.h"

namespace miniqat {

void require_inputs(std::span<const TensorSpec> inputs, std::size_t count) {
  if (inputs.size() != count)
    fail("takes ", count, count == 1 ? " input" : " inputs", ", ", inputs.size(), inputs.size() == 1 ? " is" : " are",
         " given");
}

void require_rank(std::span<const TensorSpec> inputs, std::size_t index, int rank, std::string_view role) {
  if (index >= inputs.size()) fail(role, " (input ", index, ") is missing, ", inputs.size(), " inputs are given");
  const Shape& shape = inputs[index].shape;
  if (shape.rank() != rank) fail(role, " must have rank ", rank, ", has rank ", shape.rank(), "; ", role, " ", shape);
}

void require_float(std::span<const TensorSpec> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) require_float(inputs[i], concat("input ", i));
}

void require_float(const TensorSpec& input, std::string_view role) {
  if (input.dtype != DType::kFloat32)
    fail(role, " must be float32, is ", name_of(input.dtype), "; ", role, " ", input.shape);
}

void require_elements(std::span<const TensorSpec> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape.elements() == 0) fail("input ", i, " is empty; its shape is ", inputs[i].shape);
}

}  // namespace miniqat
