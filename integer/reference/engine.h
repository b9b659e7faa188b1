#pragma once

#include <span>
#include <vector>

namespace miniqat {
class Tensor;
}

namespace miniqat::integer {
struct Model;
struct Operation;
}  // namespace miniqat::integer

namespace miniqat::integer::reference {

// A model by the plain loops that specify its operations (integer/ops/).

/// One operation. `inputs` in its order, each [n, shape...] uint8 with the same n; returns [n, shape...] uint8. The
/// model must have passed Model::check(). Throws Error for inputs of another shape or type.
Tensor run_operation(const Model& model, const Operation& operation, std::span<const Tensor> inputs);

/// The whole model on images [n, shape of the input...] uint8. Returns every tensor, in the order of Model::tensors.
/// The model must have passed Model::check(). Throws Error for images of another shape or type.
std::vector<Tensor> run(const Model& model, const Tensor& images);

}  // namespace miniqat::integer::reference
