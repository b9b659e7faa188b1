#include "layers/hard_swish.h"

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/hard_swish.h"

namespace miniqat::layers {

class HardSwishOp final : public OpOf<HardSwish> {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

std::shared_ptr<Op> HardSwish::make(const Attributes& attributes) { return std::make_shared<HardSwishOp>(attributes); }

std::vector<TensorSpec> HardSwishOp::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 1);
  require_float(inputs);
  return {inputs[0]};
}

OpTraits HardSwishOp::traits() const {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.backward_inputs = {0};
  return traits;
}

// The gate, (x + 3) / 6 held within [0, 1], is exactly 1 from 3 on. Comparisons are written so that NaN fails them.

void HardSwishOp::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) {
    const float raised = x + 3 > 6 ? 6 : x + 3;
    return x <= -3 ? 0 : x * (raised / 6);
  });
}

void HardSwishOp::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0])
    pointwise(*context.d_outputs[0], context.forward->input(0), *d_x, [](float d, float x) {
      const float inside = (x + 1.5f) / 3;
      const float slope = x >= 3 ? 1 : inside;
      return x <= -3 ? 0 : d * slope;
    });
}

void HardSwishOp::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x,
                  [&]<class T>(T) { reference::hard_swish(x.elements(), x.data<T>(), context.output(0).data<T>()); });
}

void HardSwishOp::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  if (Tensor* d_x = context.d_inputs[0])
    with_float_type(x, [&]<class T>(T) {
      reference::hard_swish_d_x(x.elements(), x.data<T>(), context.d_outputs[0]->data<T>(), d_x->data<T>());
    });
}

Output hard_swish(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, HardSwish::make(), {x}).output();
}

}  // namespace miniqat::layers
