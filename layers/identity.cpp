#include "layers/identity.h"

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"

namespace miniqat::layers {
namespace {

class IdentityOp final : public OpOf<Identity> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    return {inputs[0]};
  }

  OpTraits traits() const override {
    OpTraits traits;
    traits.view = true;
    return traits;
  }

  void forward(const ForwardContext& context) const override { copy_elements(context.input(0), context.output(0)); }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) copy_elements(*context.d_outputs[0], *d_x);
  }

  void reference_forward(const ForwardContext& context) const override { forward(context); }

  void reference_backward(const BackwardContext& context) const override { backward(context); }
};

}  // namespace

std::shared_ptr<Op> Identity::make(const Attributes& attributes) { return std::make_shared<IdentityOp>(attributes); }

Output identity(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, Identity::make(), {x}).output();
}

}  // namespace miniqat::layers
