#include "layers/identity.h"

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"

namespace miniqat::layers {

class IdentityOp final : public OpOf<Identity> {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

std::shared_ptr<Op> Identity::make(const Attributes& attributes) { return std::make_shared<IdentityOp>(attributes); }

std::vector<TensorSpec> IdentityOp::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 1);
  return {inputs[0]};
}

OpTraits IdentityOp::traits() const {
  OpTraits traits;
  traits.view = true;
  return traits;
}

void IdentityOp::forward(const ForwardContext& context) const { copy_elements(context.input(0), context.output(0)); }

void IdentityOp::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0]) copy_elements(*context.d_outputs[0], *d_x);
}

void IdentityOp::reference_forward(const ForwardContext& context) const { forward(context); }

void IdentityOp::reference_backward(const BackwardContext& context) const { backward(context); }

Output identity(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, Identity::make(), {x}).output();
}

}  // namespace miniqat::layers
