#include "layers/identity.h"

#include "layers/view_op.h"

namespace miniqat::layers {
namespace {

class IdentityOp final : public ViewOp<Identity> {
 public:
  using ViewOp::ViewOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    return {inputs[0]};
  }
};

}  // namespace

std::shared_ptr<Op> Identity::make(const Attributes& attributes) { return std::make_shared<IdentityOp>(attributes); }

Output identity(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, Identity::make(), {x}).output();
}

}  // namespace miniqat::layers
