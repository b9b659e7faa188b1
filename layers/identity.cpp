#include "layers/identity.h"

#include "core/graph/node_check.h"
#include "layers/kernels/pointwise.h"

namespace miniqat::layers {

std::vector<TensorSpec> Identity::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 1);
  return {inputs[0]};
}

OpTraits Identity::traits() const {
  OpTraits traits;
  traits.view = true;
  return traits;
}

void Identity::forward(const ForwardContext& context) const { copy_elements(context.input(0), context.output(0)); }

void Identity::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0]) copy_elements(*context.d_outputs[0], *d_x);
}

void Identity::reference_forward(const ForwardContext& context) const { forward(context); }

void Identity::reference_backward(const BackwardContext& context) const { backward(context); }

Output identity(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, std::make_unique<Identity>(), {x}).output();
}

}  // namespace miniqat::layers
